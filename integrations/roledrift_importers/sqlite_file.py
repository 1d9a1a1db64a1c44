"""SQLite databases of other tools, opened so that nothing in them can be changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from roledrift.errors import StoreError
from roledrift.ingest.form import Job
from roledrift.ingest.lines import head
from roledrift.store.regular import opened

_MAGIC = b"SQLite format 3\x00"


def is_database(path: Path) -> bool:
    """Whether a file begins like an SQLite database."""
    return path.is_file() and head(path, len(_MAGIC)).startswith(_MAGIC)


def columns(path: Path, table: str) -> set[str]:
    """The columns of a table; empty if there is none, or the file is no database."""
    if not is_database(path):
        return set()
    try:
        with closing(_connected(path)) as database:
            return {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
    except (sqlite3.Error, OSError):
        return set()


@contextmanager
def database(job: Job, what: str) -> Iterator[sqlite3.Connection]:
    """The database of an import.

    Args:
        job: Its source is the file.
        what: Whose database it is, for the message.

    Raises:
        StoreError: If it cannot be read, also while it is being read.
    """
    try:
        with closing(_connected(job.source)) as connection:
            yield connection
    except (sqlite3.Error, OSError, ValueError) as error:
        raise StoreError(f"{job.shown}: cannot be read as {what} ({error})") from None


def _connected(path: Path) -> sqlite3.Connection:
    opened(path).close()  # SQLite itself would wait for the writer of a pipe.
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
