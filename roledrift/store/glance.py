"""What a run is at a glance: from its header, its incidents and the ends of its files.

A folder of a hundred long runs is a gigabyte of steps; its list has to be there at once.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roledrift.codec import from_plain
from roledrift.errors import SchemaError, StoreError
from roledrift.judgement import Incident
from roledrift.records import RunHeader
from roledrift.store import layout
from roledrift.store.decoding import decoded
from roledrift.store.header import read_header

_TAIL = 1 << 18
"""Bytes of the end of a file that are read; a line of a step rarely has a tenth of it."""

Stamp = tuple[tuple[str, int, int], ...]
"""Name, size and time of change of each file: equal as long as nothing was written."""


@dataclass(frozen=True, slots=True)
class Glance:
    """A run without its steps.

    Attributes:
        last_step: Of the newest record; None without one. ``time`` is when it was written.
        ended: True if the newest writer was closed.
        incidents: The latest state of each, the worst first.
        judged: Whether incidents were recorded at all.
        exact: False if several writers wrote the run: which incidents still count takes its steps.
    """

    header: RunHeader
    last_step: int | None
    time: str
    ended: bool
    incidents: tuple[Incident, ...]
    judged: bool
    exact: bool


def stamp(path: Path) -> Stamp:
    """Sizes and times of the files of a run; empty if it is gone."""
    try:
        with os.scandir(path) as entries:
            files = [(entry.name, entry.stat()) for entry in entries if entry.name[:1] != "."]
    except OSError:
        return ()
    return tuple(sorted((name, info.st_size, info.st_mtime_ns) for name, info in files))


def glance(path: Path) -> Glance:
    """Look at a local run.

    Raises:
        StoreError: If its header cannot be read.
        SchemaError: If its header was written by a newer version.
    """
    try:
        header = read_header(path)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror or error})") from error
    names = [name for name, _, _ in stamp(path)]
    steps = layout.writers(names, "steps")
    newest: tuple[int, str, bool] | None = None
    for writer in steps:
        last = _last(path / layout.lines_file("steps", writer))
        if last is not None and (newest is None or last[:2] >= newest[:2]):
            newest = last
    judges = layout.writers(names, "incidents")
    latest = {incident.id: incident for writer in judges for incident in _incidents(path, writer)}
    return Glance(
        header=header,
        last_step=newest[0] if newest else None,
        time=newest[1] if newest else "",
        ended=newest is not None and newest[2],
        incidents=tuple(sorted(latest.values(), key=lambda incident: incident.rank)),
        judged=bool(judges),
        exact=len(steps) < 2,
    )


def _last(file: Path) -> tuple[int, str, bool] | None:
    """Step and time of the last whole record of a file, and whether it was closed after it."""
    ended = False
    for line in reversed(_tail(file)):
        body = _body(line)
        if body.get("kind") == "end":
            ended = True
        elif isinstance(body.get("step"), int):
            return body["step"], str(body.get("time", "")), ended
    return None


def _incidents(path: Path, writer: str) -> list[Incident]:
    incidents = []
    try:
        lines = (path / layout.lines_file("incidents", writer)).read_bytes().split(b"\n")
    except OSError:
        return []
    for line in lines:
        try:
            record = from_plain(_body(line))
        except (SchemaError, OverflowError, RecursionError):
            continue  # whoever opens the run is told
        if isinstance(record, Incident):
            incidents.append(record)
    return incidents


def _tail(file: Path) -> list[bytes]:
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _TAIL))
            return stream.read().split(b"\n")
    except OSError:
        return []


def _body(line: bytes) -> dict[str, Any]:
    try:
        body = decoded(line)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
