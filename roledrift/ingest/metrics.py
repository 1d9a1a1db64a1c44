"""Any file of logged metrics: JSON lines, a JSON list, CSV, or the dictionaries of a console log.

The columns are told by their names (:mod:`roledrift.metric_names`); nothing has to be mapped.
"""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from roledrift.errors import StoreError
from roledrift.ingest import gaps
from roledrift.ingest.form import Format, Job
from roledrift.ingest.history import History
from roledrift.ingest.keys import flat, step_of
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import MAX_FILE, csv_rows, decoded, documents, head, lines
from roledrift.ingest.rows import Events
from roledrift.ingest.unpacking import BROKEN, opened, plain
from roledrift.ingest.values import integer, number, rows

_JSON_LINES = (".jsonl", ".ndjson")
_TABLES = (".csv", ".tsv")
_CONSOLES = (".log", ".txt", ".out", ".err")
_LISTS = ("log_history", "history", "metrics", "logs", "rows", "data")
"""Where a JSON document keeps its rows."""

_STEPS = ("step", "_step", "steps", "training_step", "current_step")
_PRINTED = re.compile(r"\{\s*['\"][A-Za-z_][^{}]*\}")
_LOOKED_AT = 40

Row = tuple[str, Mapping[str, Any]]


def _sniff(path: Path) -> str | None:
    if not path.is_file():
        return None
    kind = _kind(path)
    if kind is None:
        return None
    reader, title = kind
    sample = islice(reader(path, Ledger()), _LOOKED_AT)
    return title if any(_numbers(row) for _, row in sample) else None


def _kind(path: Path) -> tuple[Any, str] | None:
    name = plain(path.name).lower()
    if name.endswith(_JSON_LINES):
        return documents, "JSON lines of logged metrics"
    if name.endswith(_TABLES):
        return _table, "a table of logged metrics"
    if name.endswith(".json"):
        return _document, "a JSON document with rows of logged metrics"
    if name.endswith(_CONSOLES) and _PRINTED.search(head(path, 1 << 22).decode("utf-8", "replace")):
        return _printed, "a console log with dictionaries of metrics"
    return None


def _read(job: Job) -> Events:
    kind = _kind(job.source)
    if kind is None:
        raise StoreError(
            f"{job.source}: not a kind of file that rows of metrics are read from (give .jsonl, "
            ".json, .csv, .tsv, or a console log .log)"
        )
    history = History(job)
    printed = 0
    for where, row in kind[0](job.source, job.ledger):
        data = flat(row)
        step = _step(data)
        if step is None and kind[0] is _printed and "loss" in data and "train_runtime" not in data:
            # The trainer prints no steps, but one dictionary per log.
            printed += 1
            step = printed
            job.facts.notes["steps"] = "the console names none: the dictionaries are counted"
        history.add(step, data, where)
    yield from history.events()


def _step(data: Mapping[str, object]) -> int | None:
    step = step_of(data)
    for key in _STEPS if step is None else ():
        step = integer(data.get(key))
        if step is not None:
            return step
    return step


def _numbers(row: Mapping[str, Any]) -> bool:
    return any(number(value) is not None for value in flat(row).values())


def _table(path: Path, ledger: Ledger) -> Iterator[Row]:
    for where, row, separator in csv_rows(path, ledger):
        # Where semicolons separate cells, commas separate decimals.
        yield (
            where,
            {
                _column(key): cell.replace(",", ".") if separator == ";" else cell
                for key, cell in row.items()
                if isinstance(key, str) and isinstance(cell, str) and cell.strip()
            },
        )


def _column(name: str) -> str:
    """The metric of a column; W&B's export puts the run's name before it: ``run - reward``."""
    return name.rsplit(" - ", 1)[-1].strip()


def _document(path: Path, ledger: Ledger) -> Iterator[Row]:
    try:
        with opened(path) as file:
            body = decoded(file.read(MAX_FILE), path.name, ledger)
    except BROKEN as error:
        ledger.skip(f"unreadable file ({type(error).__name__})", path.name)
        return
    if isinstance(body, dict):
        body_rows = next((rows(body[name]) for name in _LISTS if rows(body.get(name))), [])
        if not body_rows and (columns := _columns(body)):
            body_rows = columns
    else:
        body_rows = rows(body)
    for index, row in enumerate(body_rows):
        yield f"{path.name}[{index}]", row


def _columns(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of a document that holds a list of values per metric."""
    lists = {key: value for key, value in body.items() if isinstance(value, list) and value}
    sizes = {len(value) for value in lists.values()}
    if len(lists) < 2 or len(sizes) != 1:
        return []
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _printed(path: Path, ledger: Ledger) -> Iterator[Row]:
    """Dictionaries that a trainer printed, also behind a progress bar on the same line."""
    for line_number, raw in lines(path, ledger):
        if b"{" not in raw:
            continue
        line = raw.decode("utf-8", "replace")
        for printed in _PRINTED.finditer(line):
            body = _literal(printed[0])
            if body is not None:
                yield f"{path.name}:{line_number}", body


def _literal(text: str) -> dict[str, Any] | None:
    safe = re.sub(r"(?<![\w'\"])(?:nan|inf|NaN|Infinity)(?![\w'\"])", "None", text)
    try:
        body = ast.literal_eval(safe)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        try:
            body = json.load(io.StringIO(text))
        except (ValueError, RecursionError):
            return None
    return body if isinstance(body, dict) else None


_LOG_IT = "log it per role, or watch the run live (docs/integrations)"
FORMAT = Format(
    "metrics",
    "logged metrics: JSON lines, JSON, CSV or a console log",
    _sniff,
    _read,
    {quantity.name: _LOG_IT for quantity in gaps.QUANTITIES},
)
