import subprocess
import sys
from pathlib import Path

from roledrift import open_run, replay

EXAMPLE = Path(__file__).parents[2] / "examples" / "offline_report.py"


def test_a_dump_becomes_a_run_and_a_report(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLE), "--out", str(tmp_path / "offline")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "$ roledrift report" in done.stdout
    run = open_run(tmp_path / "offline" / "run")
    assert len(run.steps()) == 24
    alerts = replay(run.steps(), run.header.workflow).alerts
    assert {(one.detector, one.role) for one in alerts} == {("length_inflation", "aggregator")}
    assert {role.name: role.slots for role in run.header.workflow.roles} == {
        "generator": 3,
        "aggregator": 1,
    }
    assert (tmp_path / "offline" / "report" / "index.html").exists()


def test_what_is_no_dump_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    command = [sys.executable, str(EXAMPLE), "--dump", str(tmp_path / "empty")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
