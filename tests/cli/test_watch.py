from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from roledrift.cli.watch import Watching, watch
from roledrift.records import RunHeader, StepRecord
from roledrift.store.writer import RunWriter
from roledrift.workflow import VOTING
from tests.cli.runs import crash_run, write_run


def test_a_finished_run_is_told_and_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_run(tmp_path / "drift", inflate_from=15)
    assert watch([str(path)]) == 1
    out = capsys.readouterr().out
    assert "drift step 0: generator 40 tokens; aggregator 5 tokens" in out
    assert "drift: roledrift FAILING" in out
    assert watch([str(write_run(tmp_path / "clean"))]) == 0


def test_a_running_run_is_followed_until_its_alert(tmp_path: Path) -> None:
    source = write_run(tmp_path / "source", inflate_from=15)
    lines = next(source.glob("steps.*")).read_bytes().splitlines(keepends=True)
    live = tmp_path / "live"
    live.mkdir()
    (live / "run.json").write_bytes((source / "run.json").read_bytes())
    steps = live / "steps.w.jsonl"
    steps.write_bytes(b"".join(lines[:10]))
    given = iter(lines[10:])

    def wait(_: float) -> None:
        with steps.open("ab") as file:
            file.write(next(given))

    assert watch([str(live)], Watching(until_alert=True, sleep=wait)) == 1
    assert next(given, b"") != b"", "it left before the run was over"


def test_silence_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "quiet"
    writer = RunWriter(path, RunHeader("quiet", VOTING))
    writer.write_step(StepRecord(0, time="2026-01-01T00:00:00Z"))
    looks = threading.Event()
    count = 0

    def wait(_: float) -> None:
        nonlocal count
        count += 1
        if count == 3:
            writer.close()
            looks.set()

    watch([str(path)], Watching(sleep=wait, clock=lambda: 1e12))
    assert capsys.readouterr().err.count("silent for") == 1


def test_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path / "drift", inflate_from=15)
    watch([str(path)], as_json=True)
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "roledrift.watch/2"
    (run,) = body["runs"]
    assert run["alerts"]
    assert (run["outcome"], run["sentence"]) == ("failing", run["incidents"][0]["sentence"])
    assert watch([str(tmp_path / "no")], as_json=True) == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "not_found"
    (tmp_path / "bare").mkdir()
    assert watch([str(tmp_path / "bare")]) == 3


def test_a_crashed_run_is_silent_at_the_first_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = crash_run(tmp_path / "crashed", last=1e9)
    long_after = Watching(once=True, clock=lambda: 4e9)
    assert watch([str(path)], long_after) == 1
    assert "since step 19 (crashed?)" in capsys.readouterr().err
    assert watch([str(path)], long_after, as_json=True) == 1
    assert json.loads(capsys.readouterr().out)["runs"][0]["state"] == "silent"
    assert watch([str(path)], Watching(clock=lambda: 4e9, until_alert=True)) == 1


def test_one_unreadable_run_does_not_end_the_watch_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "a")
    bad = write_run(tmp_path / "b")
    (bad / "run.json").write_text("{")
    assert watch([str(tmp_path)], Watching(once=True)) == 2
    said = capsys.readouterr()
    assert "a step 29" in said.out
    assert said.err.count("b/run.json: not readable") == 1
    assert watch([str(tmp_path)], Watching(once=True), as_json=True) == 2
    body = json.loads(capsys.readouterr().out)
    assert [len(body["runs"]), len(body["problems"])] == [1, 1]
    assert watch([str(bad)], Watching(once=True)) == 2


def test_no_step_is_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path / "empty", 0)
    assert watch([str(path)], Watching(once=True)) == 3
    assert "no step recorded yet" in capsys.readouterr().err
