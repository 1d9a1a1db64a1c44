import json
from pathlib import Path

from roledrift_importers.pettingllms import entries

from roledrift.ingest.ledger import Ledger
from tests.ingest.logs import FIXTURES, imported


def entry(turn: int, name: str, text: str, **extra: object) -> str:
    body = {
        "message": "m",
        "timestamp": "t",
        "extra_data": {"agent_prompt": {"text": "p"}, "agent_response": text, **extra},
    }
    head = f"[2025-01-01 00:00:00] [ENV:3] [ROLLOUT:1] [TURN:{turn}] [AGENT:{name}]"
    return f"{head}\n{json.dumps(body, indent=2)}\n"


def log(root: Path, moment: str, text: str, phase: str = "train") -> None:
    """After the documented layout of PettingLLMs' environment logs."""
    folder = root / "logs" / "exp" / "11-20" / moment / phase / "3" / "1"
    folder.mkdir(parents=True)
    (folder / "env_agent.log").write_text(text)


def test_what_pettingllms_itself_wrote(tmp_path: Path) -> None:
    """Two training phases and a validation between them, with a generation that failed in each."""
    done, run = imported(FIXTURES / "pettingllms", tmp_path / "run")
    assert (done.format, done.tally.steps, done.tally.spans) == ("pettingllms", 2, 28)
    assert done.odd == {"generation that failed": 4, "log of a validation phase": 4}
    assert run.header.workflow.role_names == ("coder", "tester")
    first, second = run.steps()
    # Rewards are in summary.log: rollouts 1 and 3 gave the coder 1.
    assert (first.mean("coder", "reward"), first.mean("tester", "reward")) == (0.5, 0.5)
    assert (first.totals.get("val_accuracy"), second.totals.get("val_accuracy")) == (0.75, None)
    assert first.faults == {"generation that failed": 2}
    assert {one.text for one in run.samples()} == {
        f"[TURN:9] def f():\n    return {turn}" for turn in (1, 2)
    }


def test_phases_are_numbered_in_their_order(tmp_path: Path) -> None:
    source = tmp_path / "s"
    both = entry(0, "coder", "def f(): ...", reward=1.0) + entry(0, "tester", "assert f()")
    log(source, "10-00-00", both)
    log(source, "10-05-00", both + entry(1, "coder", "again {not json}")[:90] + "\n{half")
    log(source, "10-06-00", both, phase="validate")
    done, run = imported(source, tmp_path / "run")
    assert done.format == "pettingllms"
    assert [record.step for record in run.steps()] == [0, 1]
    assert run.header.workflow.role_names == ("coder", "tester")
    assert run.steps()[0].mean("coder", "reward") == 1
    assert done.odd == {"entry without a whole JSON object": 1, "log of a validation phase": 1}


def test_the_older_layout_without_environments(tmp_path: Path) -> None:
    for moment in ("10-00-00", "10-05-00"):
        folder = tmp_path / "logs" / "2025-09-01" / moment
        folder.mkdir(parents=True)
        (folder / "env_agent.log").write_text(entry(0, "coder", "x").replace("[ENV:3] ", ""))
    done, run = imported(tmp_path / "logs", tmp_path / "run")
    assert [record.step for record in run.steps()] == [0, 1]
    assert done.odd == {}


def test_text_that_looks_like_a_header_stays_text(tmp_path: Path) -> None:
    file = tmp_path / "env_agent.log"
    file.write_text(
        "junk\n"
        + entry(0, "a", "say [ENV:1] [ROLLOUT:1] [TURN:0] [AGENT:x] and {")
        + "[ENV:1] [AGENT:\n"
    )
    ledger = Ledger()
    found = list(entries(file, ledger))
    assert [one["agent"] for _, one, _ in found] == ["a"]
    assert (
        found[0][2]["extra_data"]["agent_response"]
        == "say [ENV:1] [ROLLOUT:1] [TURN:0] [AGENT:x] and {"
    )
