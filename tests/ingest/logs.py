"""Small foreign logs for tests, varied from what the frameworks wrote, and what is made of them."""

import gzip
import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from roledrift.ingest import named, sniff
from roledrift.ingest.form import Job
from roledrift.ingest.importing import Imported, import_run
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.roles import RoleMap
from roledrift.ingest.rows import Event, Series, SpanRow
from roledrift.store.reader import StoredRun, open_run

FIXTURES = Path(__file__).parent / "fixtures"


def job(source: Path, roles: str = "", mapping: dict[str, Any] | None = None) -> Job:
    return Job(source, RoleMap(roles), mapping, Ledger())


def read(source: Path, form: str = "", **facts: Any) -> tuple[list[Event], Job]:
    """Everything that the reader of ``source`` yields."""
    one = job(source, **facts)
    found = named(form)[0] if form else sniff(source)[0]
    return list(found.read(one)), one


def spans(events: Iterable[Event]) -> list[SpanRow]:
    return [one for one in events if isinstance(one, SpanRow)]


def series(events: Iterable[Event]) -> list[Series]:
    return [one for one in events if isinstance(one, Series)]


def imported(
    source: Path, out: Path, form: str = "", part: tuple[str, ...] = (), **facts: Any
) -> tuple[Imported, StoredRun]:
    found = named(form) if form else sniff(source)
    done = import_run(found, replace(job(source, **facts), part=part), out)
    return done, open_run(out)


def unpacked(fixture: str, folder: Path) -> Path:
    """A database that is kept compressed, as a file in a folder."""
    path = folder / Path(fixture).stem
    path.write_bytes(gzip.decompress((FIXTURES / fixture).read_bytes()))
    return path


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


VOTING = FIXTURES / "paper" / "voting-qwen3_1.7b-multi_lora-math"
_EPISODE = json.loads((VOTING / "dapo_math" / "step_0" / "eval_0.json").read_text())


def trajectory(
    name: str, text: str, *, tokens: int = 7, reward: float = 1.0, cut: bool = False
) -> Any:
    """A trajectory of the paper's code with another text."""
    one = deepcopy(_EPISODE["trajectories"][0])
    step = one["steps"][0]
    finish = "length" if cut else "stop"
    step["model_output"] |= {
        "text": text, "content": text, "completion_length": tokens, "finish_reason": finish,
    }  # fmt: skip
    chat = [{"role": "user", "content": f"do {name}"}, {"role": "assistant", "content": text}]
    step |= {"chat_completions": chat, "action": "?", "reward": reward}
    return one | {"name": name, "reward": reward}


def episode(number: int, *trajectories: Any, correct: bool = True, **more: Any) -> dict[str, Any]:
    """An episode of the paper's code about another problem."""
    return {
        **deepcopy(_EPISODE),
        "id": f"eval_{number}",
        "task": {"question": f"problem {number}", "final_answer": "5"},
        "is_correct": correct,
        "trajectories": list(trajectories),
        **more,
    }


def voting(number: int, answers: str = "557", pick: str = "\\boxed{1}") -> dict[str, Any]:
    solvers = [trajectory(f"generator{i}", f"so \\boxed{{{a}}}") for i, a in enumerate(answers)]
    return episode(number, *solvers, trajectory("aggregator", pick, tokens=4))


def paper_dump(root: Path, episodes: Mapping[int, list[dict[str, Any]]]) -> Path:
    """``<experiment>/<dataset>/step_<N>/<episode>.json``; the folder of the data set."""
    dataset = root / "voting-qwen3_1.7b-multi_lora-math" / "dapo_math"
    for step, bodies in episodes.items():
        folder = dataset / f"step_{step}"
        folder.mkdir(parents=True, exist_ok=True)
        for body in bodies:
            (folder / f"{body['id']}.json").write_text(json.dumps(body, indent=2))
    return dataset
