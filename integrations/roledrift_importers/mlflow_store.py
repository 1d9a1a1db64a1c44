"""mlflow's local stores, read without mlflow: a folder ``mlruns/`` and an SQLite database.

In the folder, a metric of a run is a text file with a line ``<milliseconds> <value> <step>`` per
logged value; slashes in its name are folders. In the database it is a table with the same columns.
:mod:`roledrift_importers.mlflow_server` asks a tracking server instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from sqlite3 import Connection

from roledrift.ingest import gaps
from roledrift.ingest.choosing import only
from roledrift.ingest.form import Format, Job
from roledrift.ingest.history import History
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import head, lines
from roledrift.ingest.rows import Events
from roledrift.ingest.values import integer, number
from roledrift_importers import sqlite_file
from roledrift_importers.mlflow_server import SCHEME, Point, points

_WHAT = "mlflow's database"
_COLUMNS = {"key", "value", "timestamp", "run_uuid", "step", "is_nan"}
_HELD = """
    SELECT run_uuid, COALESCE(NULLIF(name, ''), (
        SELECT value FROM tags WHERE tags.run_uuid = runs.run_uuid AND key = 'mlflow.runName'
    ), run_uuid) FROM runs
    WHERE lifecycle_stage = 'active'
    AND EXISTS (SELECT 1 FROM metrics WHERE metrics.run_uuid = runs.run_uuid)
    ORDER BY start_time
"""


def _sniff(path: Path) -> str | None:
    if sqlite_file.columns(path, "metrics") >= _COLUMNS:
        return _WHAT
    folders = _folders(path)
    return f"mlflow's folder of {len(folders)} run(s)" if folders else None


def _runs(path: Path) -> dict[str, str]:
    if path.is_file():
        with sqlite_file.database(Job(path), _WHAT) as database:
            return _held(database)
    return {folder.name: _meta(folder, "run_name") or folder.name for folder in _folders(path)}


def _held(database: Connection) -> dict[str, str]:
    return {str(run): str(name) for run, name in database.execute(_HELD)}


def _folders(path: Path) -> list[Path]:
    """Folders of runs: the path itself, those of an experiment, or those of all experiments."""
    if not path.is_dir():
        return []
    if _is_run(path):
        return [path]
    if (path / "meta.yaml").is_file():
        experiments = [path]
    else:
        experiments = [meta.parent for meta in sorted(path.glob("*/meta.yaml"))]
    runs = [meta.parent for place in experiments for meta in place.glob("*/meta.yaml")]
    return sorted(
        (folder for folder in runs if _is_run(folder)),
        key=lambda folder: _meta(folder, "start_time"),
    )


def _is_run(folder: Path) -> bool:
    metrics = folder / "metrics"
    if not metrics.is_dir() or not (folder / "meta.yaml").is_file():
        return False
    return _meta(folder, "lifecycle_stage") != "deleted" and any(metrics.iterdir())


def _meta(folder: Path, key: str) -> str:
    """A plain value of a folder's ``meta.yaml``; empty if it is not there."""
    body = head(folder / "meta.yaml").decode("utf-8", "replace")
    match = re.search(rf"^{key}: *(.*?) *$", body, re.MULTILINE)
    value = match[1] if match else ""
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return value.strip('"')


def _read(job: Job) -> Events:
    if job.address.startswith(SCHEME):
        history = collected(job, points(job))
    elif job.source.is_file():
        with sqlite_file.database(job, _WHAT) as database:
            held = _held(database)
            run = only(job, held)
            job.facts.run = held.get(run, run)
            _about(job, *_experiment_and_seed(database, run))
            history = collected(job, _rows(database, run))
    else:
        folders = {folder.name: folder for folder in _folders(job.source)}
        run = only(
            job, {name: _meta(folder, "run_name") or name for name, folder in folders.items()}
        )
        folder = folders[run]
        job.facts.run = _meta(folder, "run_name") or run
        seed = head(folder / "params" / "seed").decode("utf-8", "replace")
        _about(job, _meta(folder.parent, "name"), seed)
        history = collected(job, sorted(_lines(folder / "metrics", job.ledger)))
    yield from history.events()


def _experiment_and_seed(database: Connection, run: str) -> tuple[str, str]:
    """Experiment and seed of a run, empty where they are not known."""
    name = database.execute(
        "SELECT experiments.name FROM runs JOIN experiments USING (experiment_id)"
        " WHERE run_uuid = ?",
        (run,),
    ).fetchone()
    query = "SELECT value FROM params WHERE run_uuid = ? AND key = 'seed'"
    seed = database.execute(query, (run,)).fetchone()
    return str(name[0]) if name else "", str(seed[0]) if seed else ""


def _about(job: Job, experiment: str, seed: str) -> None:
    if experiment:
        job.facts.notes["mlflow experiment"] = experiment
    job.facts.seed = integer(seed)


def _rows(database: Connection, run: str) -> Iterator[Point]:
    query = (
        "SELECT timestamp, step, key, value, is_nan FROM metrics WHERE run_uuid = ?"
        " ORDER BY timestamp, step"
    )
    for time, step, key, value, is_nan in database.execute(query, (run,)):
        yield time, step, key, math.nan if is_nan else float(value)


def _lines(folder: Path, ledger: Ledger) -> Iterator[Point]:
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        key = file.relative_to(folder).as_posix()
        for line_number, line in lines(file, ledger):
            parts = line.decode("utf-8", "replace").split()
            if not parts:
                continue
            time, value = integer(parts[0]), number(parts[1]) if len(parts) > 1 else None
            step = integer(parts[2]) if len(parts) > 2 else 0
            if time is None or value is None or step is None:
                ledger.skip("broken line of a metric", f"{key}:{line_number}")
                continue
            yield time, step, key, value


def collected(job: Job, points: Iterable[Point]) -> History:
    """Logged values, in the order of time, as rows of a history."""
    history = History(job)
    for step, group in groupby(points, key=lambda point: point[1]):
        # verl writes mlflow's names without the @ that mlflow refuses.
        row = {key.replace("_at_", "@"): value for _, _, key, value in group}
        history.add(step, row, f"step {step}")
    return history


FORMAT = Format(
    "mlflow",
    "mlflow's runs: mlruns/, SQLite and tracking servers",
    _sniff,
    _read,
    {quantity.name: "log it per role, or watch the run live" for quantity in gaps.QUANTITIES},
    _runs,
    SCHEME,
)
