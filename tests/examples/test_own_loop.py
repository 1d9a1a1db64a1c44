import subprocess
import sys
from pathlib import Path

from roledrift import open_run, replay

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_loop.py"


def test_the_loop_is_watched_and_stopped(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, str(EXAMPLE), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "stopped at step" in done.stdout
    run = open_run(out)
    steps = run.steps()
    assert len(steps) < 120
    (alert,) = run.alerts
    assert (alert.detector, alert.role, alert.stops) == ("length_inflation", "aggregator", True)
    assert f"FAILING step {alert.step}" in done.stderr
    again = replay(steps, run.header.workflow)
    assert not again.alerts, "the default configuration takes growth of all roles for the task's"
