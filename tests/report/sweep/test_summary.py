from __future__ import annotations

import pickle
from pathlib import Path

from roledrift.report.build import build_run
from roledrift.report.judged_run import JudgedRun
from roledrift.report.sweep.summary import summarise


def test_a_run_in_a_few_kilobytes(failing: JudgedRun) -> None:
    one = summarise(failing, build_run(failing, "x"), "runs/run1.html")
    assert one.href == "runs/run1.html#run1"
    assert (one.policy, one.task, one.seed) == ("SP", "math", 3)
    assert one.best == (0, 0.6)
    assert one.incident == failing.conclusion.incident
    assert one.settings["note: stress"] == "length pays"
    assert len(pickle.dumps(one)) < 20_000
    assert repr(pickle.loads(pickle.dumps(one))) == repr(one)


def test_isolated_and_single_runs_are_named(write_run: object, tmp_path: Path) -> None:
    from roledrift.report.judged_run import load
    from roledrift.workflow import SINGLE, VOTING

    for workflow, policy in ((VOTING.routed("isolated"), "IP"), (SINGLE, "SA")):
        path = write_run(tmp_path / policy, steps=3, workflow=workflow)  # type: ignore[operator]
        run = load(path, "r")
        assert summarise(run, build_run(run, "x")).policy == policy
