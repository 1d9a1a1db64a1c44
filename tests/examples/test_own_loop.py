import runpy
import sys
from pathlib import Path

import pytest

from roledrift import open_run, replay

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_loop.py"


def test_the_loop_is_watched_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--out", str(out)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    printed = capsys.readouterr()
    assert "stopped at step" in printed.out
    run = open_run(out)
    steps = run.steps()
    assert len(steps) < 120
    (alert,) = run.alerts
    assert (alert.detector, alert.role, alert.stops) == ("length_inflation", "aggregator", True)
    assert f"FAILING step {alert.step}" in printed.err
    again = replay(steps, run.header.workflow)
    assert not again.alerts, "the default configuration takes growth of all roles for the task's"
