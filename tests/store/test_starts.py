"""Starts of earlier runs of a folder: written at the end, read by the next run, never trusted."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roledrift.store import layout
from roledrift.store.starts import StartsWriter, earlier_starts
from roledrift.workflow import EVAL_OPT
from tests.store.records import HEADER

STARTS = {"aggregator": {"length": 2.5}, "generator": {"length": 5.0}}


def _write(path: Path, outcome: str = "clean", header: Any = HEADER, starts: Any = STARTS) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    StartsWriter(path, header, lambda: (outcome, "A sentence.", starts)).close()
    return path


def _found(folder: Path, header: Any = HEADER) -> list[Any]:
    return earlier_starts(folder / "new", header)


def test_healthy_siblings_of_the_same_kind_are_found_newest_first(tmp_path: Path) -> None:
    for number in range(3):
        _write(tmp_path / f"run-{number}", starts={"a": {"length": float(number)}})
        (tmp_path / f"run-{number}" / layout.STARTS).touch()
    for number in range(3):
        os.utime(tmp_path / f"run-{number}" / layout.STARTS, (number, number))
    assert [one["a"]["length"] for one in _found(tmp_path)] == [2.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("outcome", "count"),
    [
        ("clean", 1),
        ("suspicious", 1),
        ("failing", 0),
        ("input problem", 0),
        ("no verdict", 0),
        ("", 0),
    ],
)
def test_sick_siblings_are_no_yardstick(tmp_path: Path, outcome: str, count: int) -> None:
    _write(tmp_path / "old", outcome)
    assert len(_found(tmp_path)) == count


@pytest.mark.parametrize(
    "other",
    [{"workflow": EVAL_OPT}, {"host": "verl"}, {"task": "another"}, {"scale": "7B"}],
)
def test_runs_of_another_kind_are_passed_over(tmp_path: Path, other: dict[str, Any]) -> None:
    _write(tmp_path / "old", header=replace(HEADER, **other))
    assert _found(tmp_path) == []
    assert len(_found(tmp_path, replace(HEADER, **other, seed=99, run="x"))) == 1


def test_a_run_is_no_sibling_of_itself_and_no_draft_is_left(tmp_path: Path) -> None:
    _write(tmp_path / "new")
    assert _found(tmp_path) == []
    assert [one.name for one in (tmp_path / "new").iterdir()] == [layout.STARTS]


def _body(**change: Any) -> str:
    body = {"v": 1, "kind": "starts", "outcome": "clean", "starts": STARTS}
    return json.dumps(body | change)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "3", '"x"', "[" * 100_000, "{" * 2_000, "\x00", _body(),
        "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_passed_over(tmp_path: Path, text: str) -> None:
    _write(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / layout.STARTS).write_text(text, encoding="utf-8")
    assert len(_found(tmp_path)) == 1


@pytest.mark.parametrize(
    "starts",
    [None, 3, [], {"a": 3}, {"a": {"length": "long"}}, {"a": {"length": None}}, {"a": [1]}],
)
def test_starts_of_another_shape_are_passed_over(tmp_path: Path, starts: Any) -> None:
    path = _write(tmp_path / "odd")
    body = json.loads((path / layout.STARTS).read_text())
    (path / layout.STARTS).write_text(json.dumps(body | {"starts": starts}))
    assert _found(tmp_path) == []


def test_binary_and_huge_files_and_folders_are_passed_over(tmp_path: Path) -> None:
    for name, data in (("binary", b"\xff\xfe\x00"), ("huge", b" " * (1 << 21))):
        (tmp_path / name).mkdir()
        (tmp_path / name / layout.STARTS).write_bytes(data)
    (tmp_path / "folder" / layout.STARTS).mkdir(parents=True)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    _write(tmp_path / "good")
    assert len(_found(tmp_path)) == 1
    assert earlier_starts(tmp_path / "missing" / "deeper" / "new", HEADER) == []


def test_no_more_than_twenty_are_read(tmp_path: Path) -> None:
    for number in range(25):
        _write(tmp_path / f"run-{number:02d}")
    assert len(_found(tmp_path)) == 20
