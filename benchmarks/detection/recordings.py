"""What a monitor wrote about a run, small enough to be kept in the repository.

A recording is the run's step records as columns, numbers rounded to five digits, without the times,
the cost of watching, checkpoints and the groups of single slots (no detector reads them), and
without texts but for one of each role in three steps. ``load`` gives records back that a panel
judges as it judged the run.
"""

from __future__ import annotations

import json
import lzma
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from roledrift import StepRecord, Workflow
from roledrift.codec import from_plain, plain
from roledrift.records import RunHeader, Sample
from roledrift.store.columns import pack, unpack
from roledrift.store.reader import open_run

FOLDER = Path(__file__).parent / "recordings"
DIGITS = 5
_LEFT_OUT = ("time", "cost_ms", "writer", "seq", "v", "kind", "checkpoints")
_STEPS_WITH_TEXTS = 3


@dataclass(frozen=True)
class Recording:
    """A run, as far as it was kept.

    Attributes:
        scenario: Name in the suite.
        seed: Of the run.
        workflow: Roles and policies.
        config: What the monitor was told, e.g. the baseline.
        steps: The records.
        validation: Iteration to accuracy, from iteration 0.
        problems: How many each validation had.
        samples: Some texts.
        base: Seed of the base model's warm-up; None for the base of the earlier recordings.
        terse: Role to the share of its outputs, per iteration, that begin with the answer, as the
            trainer counted them: it labels natural captures. Empty in the earlier recordings.
        solved_before: Problem by problem, the validation before the first iteration.
    """

    scenario: str
    seed: int
    workflow: Workflow
    config: Mapping[str, Any]
    steps: tuple[StepRecord, ...]
    validation: Mapping[int, float]
    problems: int
    samples: tuple[Sample, ...]
    base: int | None = None
    terse: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    solved_before: str = ""


def place(scenario: str, seed: int, folder: Path = FOLDER, *, base: int | None = None) -> Path:
    """Where a recording lies."""
    return folder / f"{scenario}-{'' if base is None else f'b{base}-'}{seed}.json.xz"


def exists(scenario: str, seed: int, *, base: int | None = None) -> bool:
    """Whether the run was recorded."""
    return place(scenario, seed, base=base).is_file()


def record(
    run: Path, scenario: str, seed: int, *, folder: Path = FOLDER, base: int | None = None
) -> Path:
    """Keep the run in ``run``, a folder of the reference trainer.

    A run that was taken up from a longer one still holds that one's later steps: they are left out.
    """
    # It needs torch, which is not wanted where recordings are only read.
    from reference_trainer.run_folder import RunFolder

    stored = open_run(run)
    last = RunFolder(run).config().train.steps
    trace = RunFolder(run).trace()
    evaluations = {int(row["step"]): row["validation"] for row in trace if row.get("validation")}
    steps = [plain(rounded(record)) for record in stored.steps() if record.step <= last]
    # Not a column: a single row would have it.
    first: Any = next((record.pop("base") for record in steps if record.get("base")), {})
    body = {
        "scenario": scenario,
        "seed": seed,
        "header": plain(stored.header),
        "base": base,
        "before": first,
        "solved_before": evaluations.get(0, {}).get("solved", ""),
        "terse": _terse(trace),
        "steps": pack(steps),
        "validation": {step: values["accuracy"] for step, values in evaluations.items()},
        "problems": next(iter(evaluations.values()))["problems"] if evaluations else 0,
        "samples": [
            plain(sample)
            for sample in _texts([sample for sample in stored.samples() if sample.step <= last])
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    final = place(scenario, seed, folder, base=base)
    draft = final.with_suffix(f".{os.getpid()}.draft")
    text = json.dumps(body, separators=(",", ":"), allow_nan=False)
    draft.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    return draft.replace(final)


@cache
def load(scenario: str, seed: int, folder: Path = FOLDER, *, base: int | None = None) -> Recording:
    """Read a recording."""
    packed = place(scenario, seed, folder, base=base).read_bytes()
    body = json.loads(lzma.decompress(packed))
    header = from_plain(body["header"])
    assert isinstance(header, RunHeader)
    rows = unpack(body["steps"])
    if rows and body.get("before"):
        rows[0]["base"] = body["before"]
    steps = [from_plain({"v": 1, "kind": "step", **sample}) for sample in rows]
    samples = [from_plain(sample) for sample in body["samples"]]
    return Recording(
        scenario=scenario,
        seed=seed,
        workflow=header.workflow,
        config=header.config,
        steps=tuple(record for record in steps if isinstance(record, StepRecord)),
        validation={int(step): value for step, value in body["validation"].items()},
        problems=body["problems"],
        samples=tuple(sample for sample in samples if isinstance(sample, Sample)),
        base=body.get("base"),
        terse={role: tuple(shares) for role, shares in body.get("terse", {}).items()},
        solved_before=body.get("solved_before", ""),
    )


def rounded(record: StepRecord) -> StepRecord:
    """``record`` as a recording holds it: without what is left out, numbers rounded."""
    body = _rounded(plain(record))
    kept = {key: value for key, value in body.items() if key not in _LEFT_OUT}
    for part in ("groups", "base"):
        kept[part] = {name: value for name, value in kept[part].items() if "/" not in name}
    step = from_plain({"v": 1, "kind": "step", **kept})
    assert isinstance(step, StepRecord)
    return step


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        if value == 0.0 or not math.isfinite(value):
            return value
        short = float(f"{value:.{DIGITS}g}")
        return int(short) if short.is_integer() and abs(short) < 1e6 else short
    if isinstance(value, Mapping):
        return {key: _rounded(value) for key, value in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def _terse(trace: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Role to the share of terse outputs per iteration; 1 digit in 1,000 is more than enough."""
    shares: dict[str, list[float]] = {}
    for row in trace:
        for role, sample in row.get("roles", {}).items():
            shares.setdefault(role, []).append(round(sample["terse"], 3))
    return shares


def _texts(samples: Sequence[Sample]) -> list[Sample]:
    """One text per role at the start, in the middle and at the end."""
    steps = sorted({sample.step for sample in samples})
    most = min(_STEPS_WITH_TEXTS, len(steps))
    chosen = {steps[i * (len(steps) - 1) // max(most - 1, 1)] for i in range(most)}
    first = {
        (scenario.step, scenario.role): scenario
        for scenario in reversed(samples)
        if scenario.step in chosen
    }
    return [first[key] for key in sorted(first)]
