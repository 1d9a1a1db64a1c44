import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roledrift.analysis.runs import Run, open_runs
from roledrift.cli.main import app
from roledrift.records import RunHeader
from roledrift.store.reader import open_run
from roledrift.store.starts import StartsWriter
from roledrift.store.writer import RunWriter
from tests.cli.runs import HOSTILE, crash_run, write_run
from tests.store.records import incident


def ls(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["ls", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def record(path: Path, number: int, **other: object) -> None:
    header = open_run(path).header
    writer = RunWriter(path, RunHeader(run="x", workflow=header.workflow), resume=True)
    writer.write_incident(incident(number, onset=4, **other))
    writer.close()


def test_a_row_per_run_the_worst_first(tmp_path: Path) -> None:
    write_run(tmp_path / "a", 3)
    for name, severity in (("b", "suspicious"), ("c", "failing"), ("d", "input problem")):
        write_run(tmp_path / "sweep" / name, 12)
        record(tmp_path / "sweep" / name, 6, severity=severity, sentence=f"Of {name}.")
    code, out, err = ls(tmp_path)
    heading, *rows = out.splitlines()
    assert (code, err) == (0, "")
    assert heading.split()[:6] == ["run", "workflow", "routing", "steps", "state", "outcome"]
    assert [row.split()[0] for row in rows] == ["sweep/c", "sweep/d", "sweep/b", "a"]
    assert rows[0].split() == [
        *("sweep/c", "voting", "shared", "12", "finished", "failing", "Of", "c."),
    ]
    assert rows[-1].split()[:7] == ["a", "voting", "shared", "3", "finished", "no", "verdict"]


def test_of_equally_bad_runs_the_damaged_and_then_the_earliest_come_first(tmp_path: Path) -> None:
    for name in "abc":
        write_run(tmp_path / name, 9)
    record(tmp_path / "a", 6)
    record(tmp_path / "b", 6, damage="accuracy fell from 0.8 to 0.1")
    header = open_run(tmp_path / "c").header
    RunWriter(tmp_path / "c", header, resume=True).write_incident(incident(6, onset=2))
    rows = json.loads(ls(tmp_path, "--json")[1])["runs"]
    assert [row["run"] for row in rows] == ["b", "c", "a"]


def test_a_run_that_ended_without_an_incident_says_what_it_was(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", 40)
    (row,) = json.loads(ls(tmp_path, "--json")[1])["runs"]
    replayed = open_runs(tmp_path)[0].verdict
    assert (row["outcome"], row["sentence"]) == ("clean", replayed.sentence)
    header = open_run(path).header
    RunWriter(path, header, resume=True, judged=True).close()
    StartsWriter(path, header, lambda: ("no verdict", "As its monitor said.", {})).close()
    (row,) = json.loads(ls(tmp_path, "--json")[1])["runs"]
    assert (row["outcome"], row["sentence"]) == ("no verdict", "As its monitor said.")
    RunWriter(path, header, resume=True, judged=True)
    (row,) = json.loads(ls(tmp_path, "--json")[1])["runs"]
    assert (row["state"], row["outcome"]) == ("open", "")
    assert "40 steps so far" in row["sentence"]


def test_an_incident_that_has_passed_is_suspicious(tmp_path: Path) -> None:
    write_run(tmp_path / "a", 9)
    record(tmp_path / "a", 5)
    record(tmp_path / "a", 7, state="closed", sentence="It has passed.")
    (row,) = json.loads(ls(tmp_path, "--json")[1])["runs"]
    assert (row["outcome"], row["sentence"]) == ("suspicious", "It has passed.")


def test_a_run_that_nobody_judged_is_replayed(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", inflate_from=15)
    assert not open_run(path).judged
    (again,) = Run(open_run(path)).incidents
    assert again.sentence in ls(tmp_path)[1]
    RunWriter(path, open_run(path).header, resume=True, judged=True).close()
    assert Run(open_run(path)).incidents == (), "its monitor found nothing"


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
        "outcome": "no verdict",
        "role": "",
        "finding": "",
        "onset": None,
        "sentence": open_runs(tmp_path)[0].verdict.sentence,
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
    assert (crashed["state"], crashed["outcome"]) == ("silent", "suspicious")
    assert "since step 19. The run may have crashed." in crashed["sentence"]
    assert (running["state"], running["outcome"]) == ("open", "clean")
