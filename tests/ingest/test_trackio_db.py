"""A database with the tables that trackio 0.43 makes."""

import json
import sqlite3
from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.ingest import sniff
from roledrift.ingest.importing import import_run, job_for


def _database(path: Path, *runs: str) -> Path:
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL,"
            " timestamp TEXT NOT NULL, run_name TEXT NOT NULL, step INTEGER NOT NULL,"
            " metrics TEXT NOT NULL, log_id TEXT, space_id TEXT)"
        )
        for run in runs:
            for step in range(10):
                body = json.dumps({"train/reward": 0.1, "train/global_step": step + 1})
                row = (run, "2026-01-01", run, step, body)
                database.execute(
                    "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics)"
                    " VALUES (?, ?, ?, ?, ?)",
                    row,
                )
    return path


def test_the_rows_of_a_run_are_read(tmp_path: Path) -> None:
    source = _database(tmp_path / "project.db", "brave-fox")
    done = import_run(sniff(source), job_for(source), None)
    assert (done.format, done.tally.first, done.tally.last) == ("trackio", 1, 10)


def test_of_several_runs_one_must_be_chosen(tmp_path: Path) -> None:
    source = _database(tmp_path / "project.db", "a", "b")
    with pytest.raises(StoreError, match="holds 2 runs"):
        import_run(sniff(source), job_for(source), None)
