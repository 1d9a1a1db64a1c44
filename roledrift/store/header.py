"""The header of a run directory: what the run is, and what to say where it is missing."""

from __future__ import annotations

import json
from pathlib import Path

from roledrift.codec import from_plain
from roledrift.errors import SchemaError, StoreError
from roledrift.records import SCHEMA, RunHeader
from roledrift.store import layout


def read_header(path: Path) -> RunHeader:
    """The header of the run in a directory.

    Raises:
        StoreError: If it is no header.
        OSError: If it cannot be read.
        SchemaError: If a newer version wrote it.
    """
    shown = path / layout.HEADER
    try:
        body = json.loads(layout.read(shown))
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"{shown}: not readable as JSON ({error}); restore the file, it names the roles"
        ) from None
    if not isinstance(body, dict):
        raise StoreError(f"{shown}: holds no JSON object; restore the file")
    refuse_newer(body.get("v"), str(shown))
    try:
        header = from_plain(body)
    except (SchemaError, OverflowError, RecursionError) as error:
        raise StoreError(f"{shown}: {error}; restore the file or import the run again") from None
    if not isinstance(header, RunHeader):
        raise StoreError(f"{shown}: holds a {body.get('kind')} record, not a run; restore the file")
    return header


def no_header(path: Path) -> str:
    """Why a directory without a header is no run, and what to do."""
    if layout.writers(layout.names(path), "steps"):
        return f"{path}: has steps but no {layout.HEADER}; restore it, it names the roles"
    below = layout.runs_below(path)
    if below:
        runs = f"{len(below)} run{'s' * (len(below) > 1)}"
        return f"{path}: a folder of {runs}, not a run; give one, such as {below[0]}"
    return (
        f"{path}: not a run directory, it has no {layout.HEADER}; give one, "
        "or `roledrift import` another tool's log"
    )


def refuse_newer(version: object, where: str) -> None:
    """Raise SchemaError for a schema that this version does not know."""
    if isinstance(version, int) and version > SCHEMA:
        raise SchemaError(
            f"{where} is written in schema {version}, this roledrift reads up to {SCHEMA}:"
            " install a newer roledrift"
        )
