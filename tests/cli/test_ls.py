import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roledrift.cli.main import app
from roledrift.judgement import Alert, alert_id
from roledrift.records import RunHeader
from roledrift.store.reader import open_run
from roledrift.store.writer import RunWriter
from tests.cli.runs import HOSTILE, crash_run, write_run


def ls(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["ls", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def raise_alert(path: Path, finding: str, level: str, state: str = "open") -> None:
    header = open_run(path).header
    writer = RunWriter(path, RunHeader(run="x", workflow=header.workflow), resume=True)
    writer.write_alert(
        Alert(
            id=alert_id(finding, "aggregator", 4),
            detector=finding,
            finding=finding,
            role="aggregator",
            policy="shared",
            level=level,  # type: ignore[arg-type]
            state=state,  # type: ignore[arg-type]
            step=6,
            onset=4,
            title="t",
            text="x",
        )
    )
    writer.close()


def test_a_row_per_run(tmp_path: Path) -> None:
    write_run(tmp_path / "a", 3)
    write_run(tmp_path / "sweep/b", 12)
    raise_alert(tmp_path / "sweep/b", "role_drift", "WARN")
    raise_alert(tmp_path / "sweep/b", "length_inflation", "ERROR")
    code, out, err = ls(tmp_path)
    heading, first, second = out.splitlines()
    assert (code, err) == (0, "")
    assert heading.split() == ["run", "workflow", "routing", "steps", "state", "level", "finding"]
    assert first.split() == ["a", "voting", "shared", "3", "finished"]
    assert second.split() == [
        *("sweep/b", "voting", "shared", "12", "finished", "ERROR"),
        *("aggregator", "length_inflation", "since", "step", "4"),
    ]


def test_a_closed_alert_is_not_listed(tmp_path: Path) -> None:
    write_run(tmp_path / "a", 9)
    raise_alert(tmp_path / "a", "length_inflation", "ERROR")
    raise_alert(tmp_path / "a", "length_inflation", "INFO", "closed")
    assert "ERROR" not in ls(tmp_path)[1]


def test_json(tmp_path: Path) -> None:
    write_run(tmp_path / "a", 3)
    code, out, err = ls(tmp_path, "--json")
    (row,) = json.loads(out)["runs"]
    assert (code, err) == (0, "")
    assert row == {
        "run": "a",
        "path": str(tmp_path / "a"),
        "workflow": "voting",
        "routing": "shared",
        "steps": 3,
        "last_step": 2,
        "state": "finished",
        "level": "",
        "finding": "",
    }


def test_the_paths_listed_are_paths_accepted(tmp_path: Path) -> None:
    write_run(tmp_path / "deep/a", 3)
    (row,) = json.loads(ls(tmp_path, "--json")[1])["runs"]
    assert len(open_run(row["path"]).steps()) == 3
    assert json.loads(ls(row["path"], "--json")[1])["runs"][0]["run"] == "a"


def test_an_unreadable_run_is_listed_as_such(tmp_path: Path) -> None:
    (tmp_path / "bad\x1b[31m").mkdir()
    (tmp_path / "bad\x1b[31m/run.json").write_text(HOSTILE)
    code, out, _ = ls(tmp_path)
    assert code == 0
    assert "unreadable" in out
    assert "\x1b" not in out


def test_an_empty_folder_is_3_and_a_missing_one_is_2(tmp_path: Path) -> None:
    code, out, err = ls(tmp_path)
    assert (code, out) == (3, "")
    assert "no run found here" in err
    assert ls(tmp_path / "nothing")[0] == 2
    code, out, _ = ls(tmp_path / "nothing", "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (2, "not_found")


def test_the_folder_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "a", 3)
    monkeypatch.setenv("ROLEDRIFT_DIR", str(tmp_path))
    assert "voting" in ls()[1]


def test_a_crashed_run_is_silent(tmp_path: Path) -> None:
    crash_run(tmp_path / "crashed", last=1e9)
    crash_run(tmp_path / "running", last=time.time())
    code, out, _ = ls(tmp_path, "--json")
    crashed, running = json.loads(out)["runs"]
    assert code == 0
    assert (crashed["state"], crashed["level"]) == ("silent", "WARN")
    assert crashed["finding"] == "silent since step 19 (crashed?)"
    assert (running["state"], running["level"], running["finding"]) == ("open", "", "")


def test_some_of_them_in_another_order(tmp_path: Path) -> None:
    for name, steps in (("a", 3), ("b", 9), ("c", 0)):
        write_run(tmp_path / name, steps)
    raise_alert(tmp_path / "b", "length_inflation", "ERROR")

    def names(*options: str) -> list[str]:
        return [one["run"] for one in json.loads(ls(tmp_path, "--json", *options)[1])["runs"]]

    assert names("--sort", "level")[0] == "b"
    assert names("--sort", "steps") == ["b", "a", "c"]
    assert names("--state", "empty") == ["c"]
    assert names("--state", "empty,finished", "--limit", "2") == ["a", "b"]
    assert json.loads(ls(tmp_path, "--json", "--limit", "2")[1])["truncated"]
    assert not json.loads(ls(tmp_path, "--json", "--limit", "3")[1])["truncated"]
    assert "1 more of 3 runs" in ls(tmp_path, "--limit", "2")[2]
    code, out, err = ls(tmp_path, "--state", "silent")
    assert (code, out) == (3, "")
    assert "no run that is silent" in err
    code, out, err = ls(tmp_path, "--state", "silnet")
    assert (code, out) == (2, "")
    assert "Did you mean 'silent'?" in err


def test_an_alert_of_a_level_that_is_none_is_left_out(tmp_path: Path) -> None:
    write_run(tmp_path / "a", 3)
    raise_alert(tmp_path / "a", "role_drift", "FATAL")
    assert ls(tmp_path)[0] == 0
    run = open_run(tmp_path / "a")
    assert run.alerts() == []
    assert "level 'FATAL' is none of" in run.problems[0]
