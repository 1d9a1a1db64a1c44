"""Starts of earlier runs beside a run."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from roledrift.records import RunHeader
from roledrift.store.starts import NAME, Starts, StartsWriter, earlier_starts
from roledrift.workflow import VOTING

HEADER = RunHeader("run", VOTING, host="own loop", task="math")
STARTS = {"aggregator": {"length": 1.6}}


def finished(
    path: Path, outcome: str = "clean", starts: Starts = STARTS, header: RunHeader = HEADER
) -> Path:
    path.mkdir()
    StartsWriter(path, header, lambda: (outcome, starts)).close()
    return path / NAME


def test_healthy_runs_of_the_same_kind_are_read_newest_first(tmp_path: Path) -> None:
    for age, name in enumerate(("c", "a", "b")):
        file = finished(tmp_path / name, starts={"aggregator": {"length": float(age)}})
        os.utime(file, (1000 - age, 1000 - age))
    found = earlier_starts(tmp_path / "new", HEADER)
    assert [one["aggregator"]["length"] for one in found] == [0.0, 1.0, 2.0]


def test_the_run_itself_sick_runs_and_runs_of_another_kind_are_left_out(tmp_path: Path) -> None:
    finished(tmp_path / "itself")
    finished(tmp_path / "failing", "failing")
    finished(tmp_path / "unjudged", "no verdict")
    finished(tmp_path / "task", header=replace(HEADER, task="code"))
    finished(tmp_path / "routing", header=replace(HEADER, workflow=VOTING.routed("isolated")))
    assert earlier_starts(tmp_path / "itself", HEADER) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"starts": 3}',
        '{"starts": {"aggregator": {"length": "x"}}}',
        "x" * (2 << 20),
    ],
    ids=["empty", "list", "cut", "number", "word", "large"],
)
def test_files_that_cannot_be_used_are_passed_over(tmp_path: Path, text: str) -> None:
    file = finished(tmp_path / "bad")
    body = json.loads(file.read_text())
    try:
        file.write_text(json.dumps(body | json.loads(text)))
    except (ValueError, TypeError):
        file.write_text(text)
    finished(tmp_path / "good")
    assert earlier_starts(tmp_path / "new", HEADER) == [STARTS]


def test_a_folder_that_is_not_there_has_no_earlier_runs(tmp_path: Path) -> None:
    assert earlier_starts(tmp_path / "none" / "run", HEADER) == []
