"""trackio's database of a project, ``<project>.db``: SQLite, with a JSON object per logged row."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from roledrift.errors import StoreError
from roledrift.ingest import gaps
from roledrift.ingest.form import Format, Job
from roledrift.ingest.history import History
from roledrift.ingest.keys import step_of
from roledrift.ingest.lines import head
from roledrift.ingest.rows import Events
from roledrift.store.regular import opened

_MAGIC = b"SQLite format 3\x00"
_COLUMNS = {"run_name", "step", "metrics", "timestamp"}


def _sniff(path: Path) -> str | None:
    if not path.is_file() or not head(path, 16).startswith(_MAGIC):
        return None
    try:
        with _opened(path) as database:
            names = {row[1] for row in database.execute("PRAGMA table_info(metrics)")}
    except sqlite3.Error:
        return None
    return "trackio's database" if names >= _COLUMNS else None


def _opened(path: Path) -> sqlite3.Connection:
    opened(path).close()  # SQLite itself would wait for the writer of a pipe.
    return sqlite3.connect(f"file:{path.resolve()}?mode=ro", uri=True)


def _read(job: Job) -> Events:
    history = History(job)
    try:
        with _opened(job.source) as database:
            runs = [row[0] for row in database.execute("SELECT DISTINCT run_name FROM metrics")]
            if len(runs) != 1:
                raise StoreError(
                    f"{job.source}: holds {len(runs)} runs ({', '.join(map(str, runs[:8]))}); "
                    "export one of them as CSV, and give that"
                )
            job.facts.run = str(runs[0])
            query = "SELECT step, timestamp, metrics FROM metrics ORDER BY id"
            for step, when, body in database.execute(query):
                data = {"timestamp": when, **json.loads(body)}
                found = step_of(data)
                history.add(step if found is None else found, data, job.source.name)
    except (sqlite3.Error, OSError, ValueError) as error:
        raise StoreError(f"{job.source}: cannot be read as trackio's database ({error})") from None
    yield from history.events()


FORMAT = Format(
    "trackio",
    "trackio's database",
    _sniff,
    _read,
    {one.name: "log it per role, or watch the run live" for one in gaps.QUANTITIES},
)
