"""What the detectors say of six recorded runs, word for word: faster code must not change it.

``python -m tests.benchmarks.detection.test_replays`` writes the file anew; read the difference
before committing. A new detector changes nothing here unless it finds something.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.detection.recordings import load
from roledrift import replay

GOLDEN = Path(__file__).with_name("verdicts.json")
RUNS = (
    ("voting-ip-hot", 30, 0),
    ("voting-ip-unserved", 40, 1),
    ("weak-sp-verbose", 30, 0),
    ("eval-opt-sp", 40, 1),
    ("capture-sp", 20, 0),
    ("single-noise", 30, 0),
)


def judged(scenario: str, seed: int, base: int) -> dict[str, Any]:
    """Everything that people are told of a run."""
    run = load(scenario, seed, base=base)
    found = replay(run.steps, run.workflow)
    return {
        "alerts": [
            [one.step, one.state, one.onset, str(one.severity), one.title, one.text]
            for one in found.alerts
        ],
        "incidents": [[one.state, one.severity, one.sentence] for one in found.incidents],
        "verdicts": {
            f"{one.detector} of {one.role}": f"{one.state}: {one.reason}" for one in found.verdicts
        },
    }


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run[0])
def test_recorded_runs_are_judged_as_ever(run: tuple[str, int, int]) -> None:
    expected, found = json.loads(GOLDEN.read_text())["-".join(map(str, run))], judged(*run)
    assert found["alerts"] == expected["alerts"]
    assert found["incidents"] == expected["incidents"]
    assert found["verdicts"] == found["verdicts"] | expected["verdicts"]


if __name__ == "__main__":
    body = {"-".join(map(str, run)): judged(*run) for run in RUNS}
    GOLDEN.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n")
