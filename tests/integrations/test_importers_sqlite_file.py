import os
import sqlite3
from pathlib import Path

import pytest
from roledrift_importers.sqlite_file import columns, database, is_database

from roledrift.errors import StoreError
from roledrift.ingest.form import Job


def test_the_columns_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "a b%20?#.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE metrics (step INTEGER, value REAL)")
    assert columns(path, "metrics") == {"step", "value"}
    assert columns(path, "nothing") == set()


def test_nothing_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE metrics (step INTEGER)")
    with (
        pytest.raises(StoreError, match=r"a\.db: cannot be read as x"),
        database(Job(path), "x") as opened,
    ):
        opened.execute("INSERT INTO metrics VALUES (1)")


def test_what_is_no_database(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("no database")
    cut = tmp_path / "cut.db"
    cut.write_bytes(b"SQLite format 3\x00" + b"\xff" * 100)
    pipe = tmp_path / "pipe.db"
    os.mkfifo(pipe)
    assert [is_database(path) for path in (text, cut, pipe, tmp_path)] == [
        False,
        True,
        False,
        False,
    ]
    assert [columns(path, "metrics") for path in (text, cut, pipe, tmp_path)] == [set()] * 4
