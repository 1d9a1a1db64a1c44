"""Names of the files in a run directory, and how they are found.

::

    run.json                           what the run is, written once
    steps.<writer>.jsonl               a line per step; a new file per process start
    alerts.<writer>.jsonl              a line per alert
    incidents.<writer>.jsonl           a line per change of an incident
    starts.json                        where the run's statistics started, written at its end
    samples/<step>-<writer>.parquet    texts of one step

Writers only append to files of their own: no locks, no database, no memory map, so any file system
that can append will do.
"""

from __future__ import annotations

import os
import platform
import re
import time
from pathlib import Path
from typing import Literal

from roledrift.errors import StoreError
from roledrift.store import regular

Kind = Literal["steps", "alerts", "incidents"]
HEADER = "run.json"
STARTS = "starts.json"
SAMPLES = "samples"
MOST_BYTES = 2 * 2**30
"""Largest file of a run directory that is read; of ``run.json``, :data:`MOST_OF_HEADER`."""

MOST_OF_HEADER = 16 * 2**20

_LINES = re.compile(r"(steps|alerts|incidents)\.(.+)\.jsonl\Z")
_SAMPLE = re.compile(r"(-?\d+)-(.+)\.parquet\Z")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
# pathlib folds the two slashes of a URL into one; two letters at least, so that C:/ stays a drive.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/+(?=[^/])")


def writer_name() -> str:
    """A name no other process start has: host, process id, milliseconds since 1970."""
    return safe_name(f"{platform.node().split('.')[0]}-{os.getpid()}-{time.time_ns() // 1_000_000}")


def safe_name(name: str) -> str:
    """``name`` with only letters, digits, ``_`` and ``-``."""
    return _UNSAFE.sub("-", name).strip("-")[:80] or "writer"


def lines_file(kind: Kind, writer: str) -> str:
    """Name of the file that a writer appends its steps, alerts or changes of incidents to."""
    return f"{kind}.{writer}.jsonl"


def samples_file(step: int, writer: str) -> str:
    """Path, inside the run directory, of the texts of one step."""
    return f"{SAMPLES}/{step:08d}-{writer}.parquet"


def writers(names: list[str], kind: Kind) -> list[str]:
    """Writers with a file of that kind, sorted."""
    matches = (_LINES.match(name) for name in names)
    return sorted(match[2] for match in matches if match and match[1] == kind)


def files_of_run(names: list[str]) -> list[str]:
    """Those of ``names`` that a run directory is made of, without the folder of texts."""
    return [name for name in names if name in (HEADER, STARTS) or _LINES.match(name)]


def sample_owner(name: str) -> tuple[int, str] | None:
    """Step and writer of a samples file; None for any other file."""
    match = _SAMPLE.match(name)
    return (int(match[1]), match[2]) if match else None


def refuse_url(path: Path | str) -> None:
    """Raise StoreError for what is no path of this machine, such as ``s3://bucket/run``."""
    if _URL.match(str(path)):
        raise StoreError(
            f"{path}: run directories are read and written on local file systems; copy the runs, "
            "or mount the bucket"
        )


def names(folder: Path) -> list[str]:
    """File names directly in a folder, sorted; empty if it is not there."""
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def runs_below(root: Path) -> list[Path]:
    """Folders with a ``run.json`` at any depth below, sorted; a run is not looked into."""
    runs = []
    for folder, below, files in os.walk(root):
        below[:] = [name for name in below if not name.startswith(".")]
        if HEADER in files:
            below.clear()
            runs.append(Path(folder))
    return sorted(runs, key=lambda run: run.as_posix() + "/")


def read(file: Path) -> bytes:
    """Bytes of a file of a run directory.

    Raises:
        OSError: If it cannot be read, is no regular file, or is too large.
    """
    return regular.content(file, MOST_OF_HEADER if file.name == HEADER else MOST_BYTES)
