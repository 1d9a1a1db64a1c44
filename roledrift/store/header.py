"""The header of a run directory: what the run is, and what to say where it is missing."""

from __future__ import annotations

import json

from roledrift.codec import from_plain
from roledrift.errors import SchemaError, StoreError
from roledrift.records import SCHEMA, RunHeader
from roledrift.store import layout


def read_header(where: layout.Place) -> RunHeader:
    """The header of the run in a directory.

    Raises:
        StoreError: If it cannot be read.
        SchemaError: If a newer version wrote it.
    """
    shown = f"{where.shown}/{layout.HEADER}"
    try:
        body = json.loads(where.read(layout.HEADER))
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"{shown}: not readable as JSON ({error}); restore the file, it names the roles"
        ) from None
    if not isinstance(body, dict):
        raise StoreError(f"{shown}: holds no JSON object; restore the file")
    refuse_newer(body.get("v"), shown)
    try:
        header = from_plain(body)
    except (SchemaError, OverflowError, RecursionError) as error:
        raise StoreError(f"{shown}: {error}; restore the file or import the run again") from None
    if not isinstance(header, RunHeader):
        raise StoreError(f"{shown}: holds a {body.get('kind')} record, not a run; restore the file")
    return header


def no_header(where: layout.Place) -> str:
    """Why a directory without a header is no run, and what to do."""
    names = where.names("")
    if layout.writers(names, "steps"):
        return f"{where.shown}: has steps but no {layout.HEADER}; restore it, it names the roles"
    below = where.nested()
    if below:
        example = f"{where.shown.rstrip('/')}/{below[0].rsplit('/', 1)[0]}"
        runs = f"{len(below)} run{'s' * (len(below) > 1)}"
        return f"{where.shown}: a folder of {runs}, not a run; give one, such as {example}"
    return (
        f"{where.shown}: not a run directory, it has no {layout.HEADER}; give one, "
        "or `roledrift import` another tool's log"
    )


def refuse_newer(version: object, where: str) -> None:
    """Raise SchemaError for a schema that this version does not know."""
    if isinstance(version, int) and version > SCHEMA:
        raise SchemaError(
            f"{where} is written in schema {version}, this roledrift reads up to {SCHEMA}:"
            " install a newer roledrift"
        )
