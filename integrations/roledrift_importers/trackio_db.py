"""trackio's database of a project, ``<project>.db``: SQLite, with a JSON object per logged row."""

from __future__ import annotations

import json
from pathlib import Path
from sqlite3 import Connection

from roledrift.errors import StoreError
from roledrift.ingest import gaps
from roledrift.ingest.choosing import only
from roledrift.ingest.form import Format, Job
from roledrift.ingest.history import History
from roledrift.ingest.keys import flat, step_of
from roledrift.ingest.rows import Events
from roledrift_importers import sqlite_file

_WHAT = "trackio's database"
_COLUMNS = {"run_name", "step", "metrics", "timestamp"}


def _sniff(path: Path) -> str | None:
    return _WHAT if sqlite_file.columns(path, "metrics") >= _COLUMNS else None


def _runs(path: Path) -> dict[str, str]:
    with sqlite_file.database(Job(path), _WHAT) as database:
        return _held(database)


def _held(database: Connection) -> dict[str, str]:
    """Ids and names of the runs; before trackio 0.20 the name was the id."""
    column = _id(database)
    query = f"SELECT {column}, run_name FROM metrics GROUP BY {column} ORDER BY MIN(id)"
    return {str(run): str(name) for run, name in database.execute(query)}


def _id(database: Connection) -> str:
    names = {row[1] for row in database.execute("PRAGMA table_info(metrics)")}
    return "run_id" if "run_id" in names else "run_name"


def _read(job: Job) -> Events:
    history = History(job)
    with sqlite_file.database(job, _WHAT) as database:
        held = _held(database)
        run = only(job, held)
        if run not in held:
            raise StoreError(f"{job.shown}: holds no run {run!r}")
        job.facts.run = held[run]
        query = (
            f"SELECT step, timestamp, metrics FROM metrics WHERE {_id(database)} = ? ORDER BY id"
        )
        for step, when, body in database.execute(query, (run,)):
            data = json.loads(body)
            if not isinstance(data, dict):
                job.ledger.skip("row is not a JSON object", job.source.name)
                continue
            data = {"timestamp": when, **flat(data)}
            logged_step = step_of(data)
            history.add(step if logged_step is None else logged_step, data, job.source.name)
    yield from history.events()


FORMAT = Format(
    "trackio",
    _WHAT,
    _sniff,
    _read,
    {quantity.name: "log it per role, or watch the run live" for quantity in gaps.QUANTITIES},
    _runs,
)
