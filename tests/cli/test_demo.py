from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from roledrift.cli.demo import RUN, demo
from roledrift.store.reader import open_run
from tests.cli.runs import write_run


def test_the_demo_is_a_recorded_run_that_drifts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo(tmp_path, as_json=True) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["state"] in ("failing", "suspicious")
    assert (tmp_path / "report" / "index.html").exists()
    run = open_run(tmp_path / "run")
    assert run.state == "finished"
    assert run.problems == ()
    assert {alert.id for alert in run.alerts()}


def test_the_recording_is_small() -> None:
    folder = Path(str(files("roledrift.report") / RUN))
    sizes = [one.stat().st_size for one in folder.rglob("*") if one.is_file()]
    assert 1_000 < sum(sizes) <= 300_000


def test_where_nothing_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert demo(tmp_path / "file") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_it_overwrites_nothing_but_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = write_run(tmp_path / "run", 3)
    before = (mine / "run.json").read_bytes()
    assert demo(tmp_path) == 2
    assert "another run is here" in capsys.readouterr().err
    assert (mine / "run.json").read_bytes() == before
    (tmp_path / "file").write_text("x")
    assert demo(tmp_path / "file") == 2
    assert "cannot be made (Not a directory); give" in capsys.readouterr().err
    assert demo(tmp_path / "new") == demo(tmp_path / "new") == 0
