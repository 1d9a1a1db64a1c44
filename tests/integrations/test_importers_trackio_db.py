"""A database that trackio 0.43 wrote, and one with the tables of its earlier versions."""

import json
import sqlite3
from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.ingest import sniff
from roledrift.ingest.importing import import_run, job_for
from roledrift.ingest.tree import runs_at
from tests.ingest.logs import imported, unpacked


def _older(path: Path, *runs: str) -> Path:
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT NOT NULL,"
            " run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL)"
        )
        for run in runs:
            for step in range(10):
                body = json.dumps({"train/reward": 0.1, "train/global_step": step + 1})
                database.execute(
                    "INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)",
                    ("2026-01-01", run, step, body),
                )
    return path


def test_the_rows_of_a_run_are_read(tmp_path: Path) -> None:
    source = _older(tmp_path / "project.db", "brave-fox")
    done = import_run(sniff(source), job_for(source), None)
    assert (done.format, done.tally.first, done.tally.last) == ("trackio", 1, 10)


def test_each_run_of_a_database_is_one(tmp_path: Path) -> None:
    source = unpacked("trackio/grpo.db.gz", tmp_path)
    found = runs_at(source, [sniff(source)[0]])
    assert [one.name for one in found] == ["brave-fox", "calm-owl"]
    for run, reward in zip(found, (0.6, 0.5), strict=True):
        (part,) = run.sources
        _, stored = imported(source, tmp_path / run.name, part=part.part)
        assert (stored.header.run, stored.steps()[-1].step) == (run.name, 120)
        assert stored.steps()[-1].totals["reward"] == pytest.approx(reward)


@pytest.mark.parametrize("older", [True, False])
def test_of_several_runs_one_must_be_chosen(tmp_path: Path, older: bool) -> None:
    names = ("brave-fox", "calm-owl")
    made = _older(tmp_path / "p.db", *names) if older else unpacked("trackio/grpo.db.gz", tmp_path)
    with pytest.raises(StoreError, match=r"holds 2 runs \(brave-fox, calm-owl\).*db#brave-fox"):
        import_run(sniff(made), job_for(made), None)
