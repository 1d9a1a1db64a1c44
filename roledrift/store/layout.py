"""Names of the files in a run directory, and where such a directory can lie.

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

import errno
import os
import platform
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from roledrift.errors import StoreError
from roledrift.store import regular

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
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(?=[^/])")


def writer_name() -> str:
    """A name no other process start has: host, process id, milliseconds since 1970."""
    return safe_name(f"{platform.node().split('.')[0]}-{os.getpid()}-{time.time_ns() // 1_000_000}")


def safe_name(name: str) -> str:
    """``name`` with only letters, digits, ``_`` and ``-``."""
    return _UNSAFE.sub("-", name).strip("-")[:80] or "writer"


def steps_file(writer: str) -> str:
    """Name of the file a writer appends its steps to."""
    return f"steps.{writer}.jsonl"


def alerts_file(writer: str) -> str:
    """Name of the file a writer appends its alerts to."""
    return f"alerts.{writer}.jsonl"


def incidents_file(writer: str) -> str:
    """Name of the file a writer appends the changes of incidents to."""
    return f"incidents.{writer}.jsonl"


def samples_file(step: int, writer: str) -> str:
    """Path, inside the run directory, of the texts of one step."""
    return f"{SAMPLES}/{step:08d}-{writer}.parquet"


def writers(names: list[str], kind: str) -> list[str]:
    """Writers with a file of ``kind`` (``"steps"``, ``"alerts"``, ``"incidents"``), sorted."""
    found = (_LINES.match(name) for name in names)
    return sorted(match[2] for match in found if match and match[1] == kind)


def files_of_run(names: list[str]) -> list[str]:
    """Those of ``names`` that a run directory is made of, without the folder of texts."""
    return [name for name in names if name in (HEADER, STARTS) or _LINES.match(name)]


def sample_owner(name: str) -> tuple[int, str] | None:
    """Step and writer of a samples file; None for any other file."""
    match = _SAMPLE.match(name)
    return (int(match[1]), match[2]) if match else None


@dataclass(frozen=True, slots=True)
class Place:
    """A directory to read from, local or remote.

    Attributes:
        shown: The directory as it is named in messages.
        read: Bytes of the file at a path inside the directory; raises OSError, also for what is no
            regular file or too large.
        names: File names directly in a sub-directory, ``""`` for the directory itself; empty if it
            is not there.
        nested: Paths inside the directory of all files called ``run.json``, at any depth.
        exists: True if there is such a directory.
    """

    shown: str
    read: Callable[[str], bytes]
    names: Callable[[str], list[str]]
    nested: Callable[[], list[str]]
    exists: Callable[[], bool]


def place(path: Path | str) -> Place:
    """The directory at ``path``: a local path, or a URL that fsspec can open.

    Raises:
        StoreError: If the URL needs a package that is not installed, or nobody knows its protocol.
    """
    url = as_url(path)
    return _local(Path(path)) if url is None else _remote(url)


def as_url(path: Path | str) -> str | None:
    """``path`` as a URL, None if it is a local path."""
    match = _URL.match(str(path))
    if match is None or match[1] == "file":
        return None
    return f"{match[1]}://{str(path)[match.end() :]}"


def _local(root: Path) -> Place:
    def names(folder: str) -> list[str]:
        where = root / folder
        return sorted(os.listdir(where)) if where.is_dir() else []

    def nested() -> list[str]:
        found = []
        for folder, below, files in os.walk(root):
            below[:] = [name for name in below if not name.startswith(".")]
            if HEADER in files:
                below.clear()
                found.append((Path(folder) / HEADER).relative_to(root).as_posix())
        return sorted(found)

    def read(name: str) -> bytes:
        return regular.content(root / name, _most(name))

    return Place(str(root), read, names, nested, root.is_dir)


def _most(name: str) -> int:
    return MOST_OF_HEADER if name == HEADER else MOST_BYTES


def _remote(url: str) -> Place:
    """The only place that knows fsspec."""
    try:
        import fsspec  # type: ignore[import-untyped]

        files, root = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise StoreError(
            f"{url}: cannot be opened ({error}); install fsspec with the driver of this protocol"
        ) from error
    root = str(root).rstrip("/")

    def names(folder: str) -> list[str]:
        try:
            listed = files.ls(f"{root}/{folder}".rstrip("/"), detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(PurePosixPath(one).name for one in listed)

    def nested() -> list[str]:
        found = (str(one) for one in files.find(root))
        skip = len(root) + 1
        return sorted(one[skip:] for one in found if PurePosixPath(one).name == HEADER)

    def read(name: str) -> bytes:
        most = _most(name)
        body = bytes(files.cat_file(f"{root}/{name}", start=0, end=most + 1))
        if len(body) > most:
            raise OSError(errno.EFBIG, "too large", f"{root}/{name}")
        return body

    return Place(url, read, names, nested, lambda: bool(files.isdir(root)))
