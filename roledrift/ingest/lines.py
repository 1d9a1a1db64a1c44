"""Reading files that may be huge, cut off or hostile, a piece at a time."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from roledrift.ingest.ledger import Ledger
from roledrift.ingest.unpacking import BROKEN, UTF8_MARK, opened

MAX_LINE = 64 * 2**20
"""Longest line that is read, in bytes; longer ones are skipped without being held in memory."""

MAX_FILE = 512 * 2**20
"""Largest file of one JSON document."""


def lines(path: Path, ledger: Ledger) -> Iterator[tuple[int, bytes]]:
    """Lines of a text file, also a compressed one, with numbers from 1 and without the newline.

    A line beyond :data:`MAX_LINE` is skipped and counted; an unreadable rest is counted.
    """
    number = 0
    try:
        with opened(path) as file:
            while line := file.readline(MAX_LINE):
                number += 1
                if len(line) >= MAX_LINE and not line.endswith(b"\n"):
                    ledger.skip("line over 64 MiB", f"{path.name}:{number}")
                    while (rest := file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                        pass
                    continue
                if number == 1:
                    line = line.removeprefix(UTF8_MARK)
                yield number, line.rstrip(b"\r\n")
    except BROKEN as error:
        ledger.skip(f"unreadable file ({type(error).__name__})", f"{path.name}:{number}")


def documents(path: Path, ledger: Ledger) -> Iterator[tuple[str, dict[str, Any]]]:
    """JSON objects of a JSON-lines file with ``file:line``; other lines are counted."""
    for number, line in lines(path, ledger):
        if not line.strip():
            continue
        where = f"{path.name}:{number}"
        body = decoded(line, where, ledger)
        if isinstance(body, dict):
            yield where, body
        elif body is not None:
            ledger.skip("line is not a JSON object", where)


def csv_rows(path: Path, ledger: Ledger) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Rows of a table with ``file:line``, and what separates their cells; broken ones are counted.

    The separator is told by the header: half of Europe exports semicolons into files called .csv.
    """
    csv.field_size_limit(MAX_LINE)
    decoded_lines = (line.decode("utf-8", "replace") + "\n" for _, line in lines(path, ledger))
    first = next((line for line in decoded_lines if line.strip()), "")
    separator = max((",", ";", "\t"), key=first.count)
    rows = csv.DictReader(chain([first], decoded_lines), delimiter=separator, strict=True)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:
            ledger.skip("broken CSV row", f"{path.name}:{rows.line_num}")
            continue
        if None in row:
            ledger.skip("CSV row with too many fields", f"{path.name}:{rows.line_num}")
        yield f"{path.name}:{rows.line_num}", row, separator


def document(path: Path, ledger: Ledger) -> dict[str, Any] | None:
    """The JSON object that a file is; None (and counted) if it is not one."""
    try:
        with opened(path) as file:
            raw = file.read(MAX_FILE + 1)
        if len(raw) > MAX_FILE:
            ledger.skip("file over 512 MiB", path.name)
            return None
        body = decoded(raw, path.name, ledger)
    except BROKEN as error:
        ledger.skip(f"unreadable file ({type(error).__name__})", path.name)
        return None
    if body is not None and not isinstance(body, dict):
        ledger.skip("file is not a JSON object", path.name)
        return None
    return body


def decoded(raw: bytes, where: str, ledger: Ledger) -> Any:
    """Decoded JSON, None if it is broken (then it is counted)."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass  # it is stricter than many writers: no NaN, no lone surrogates, no long numbers
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        ledger.skip("bytes that are no UTF-8 were replaced", where)
        text = raw.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # ValueError also is Python's refusal of numbers with thousands of digits.
        ledger.skip("broken or half-written JSON", where)
        return None


def head(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes of a file; empty if it cannot be read."""
    try:
        with opened(path) as file:
            return file.read(size)
    except BROKEN:
        return b""


def first_document(path: Path) -> dict[str, Any]:
    """The first JSON object among the first lines; empty if there is none."""
    start = head(path, 4 << 20)
    if b"\n" not in start and start.removeprefix(UTF8_MARK).lstrip().startswith(b"{"):
        start = head(path, MAX_LINE)  # one long line
    for line in start.splitlines()[:5]:
        body = decoded(line, "", Ledger())
        if isinstance(body, dict):
            return body
    return {}


def walk(
    root: Path, *, depth: int, limit: int = 200_000, ledger: Ledger | None = None
) -> Iterator[tuple[Path, list[str]]]:
    """Folders below ``root`` with their file names, sorted, at most ``depth`` levels down.

    Symbolic links to folders are not followed: they can be circles. Folders that may not be read
    are counted in ``ledger``.
    """
    level = len(root.parts)

    def unreadable(error: OSError) -> None:
        if ledger is not None:
            ledger.skip(f"unreadable folder ({type(error).__name__})", error.filename)

    for folder, below, files in os.walk(root, onerror=unreadable):
        here = Path(folder)
        below[:] = sorted(below) if len(here.parts) - level < depth else []
        limit -= len(files) + 1
        yield here, sorted(files)
        if limit < 0:
            return
