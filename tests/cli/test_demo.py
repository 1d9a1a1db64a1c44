from __future__ import annotations

import json
from pathlib import Path

import pytest

from roledrift.cli.demo import demo, list_demos
from roledrift.cli.main import main
from roledrift.report.demos import DEMOS
from roledrift.store.reader import open_run
from tests.cli.runs import write_run


def test_the_demo_is_a_recorded_run_that_drifts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo(out=tmp_path, as_json=True) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["state"] in ("failing", "suspicious")
    assert [row["name"] for row in body["demos"]] == [DEMOS[0].name]
    assert (tmp_path / "report" / "index.html").exists()
    run = open_run(tmp_path / "run")
    assert run.state == "finished"
    assert run.problems == ()
    assert {alert.id for alert in run.alerts()}


@pytest.mark.parametrize("name", ["wrong-adapter", "healthy"])
def test_a_named_demo_has_a_folder_of_its_own(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", name, "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["run"] == f"roledrift-demo/{name}/run"
    assert body["state"] == body["demos"][0]["state"]
    assert all(Path(file).exists() for file in body["files"])
    assert main(["check", body["run"]]) == (1 if body["state"] == "failing" else 0)


def test_the_list_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_demos(as_json=True) == 0
    body = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in body["demos"]] == [one.name for one in DEMOS]
    assert body["run"] is None
    assert list_demos() == 0
    text = capsys.readouterr().out
    assert all(part in text for one in DEMOS for part in (one.name, one.happened, one.expected))


def test_an_unknown_name_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "rolecapture"]) == 2
    said = capsys.readouterr().err
    assert "no demo 'rolecapture', did you mean 'role-capture'?" in said
    assert main(["demo", "xyz", "--json"]) == 2
    failed = json.loads(capsys.readouterr().out)["error"]
    assert failed["kind"] == "usage"
    assert all(one.name in failed["message"] for one in DEMOS)
    assert main(["demo", "healthy", "--list"]) == 2
    assert "takes no name" in capsys.readouterr().err


def test_where_nothing_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert demo(out=tmp_path / "file") == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "healthy"])
def test_it_overwrites_nothing_but_itself(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = write_run(tmp_path / "run", 3)
    before = (mine / "run.json").read_bytes()
    assert demo(name, tmp_path) == 2
    assert "another run is here" in capsys.readouterr().err
    assert (mine / "run.json").read_bytes() == before
    (tmp_path / "file").write_text("x")
    assert demo(name, tmp_path / "file") == 2
    assert "Not a directory" in capsys.readouterr().err
    assert demo(name, tmp_path / "new") == demo(name, tmp_path / "new") == 0
