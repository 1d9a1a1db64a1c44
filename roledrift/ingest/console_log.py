"""Console lines of verl and its forks: ``step:34 - actor/entropy:0.22 - actor/grad_norm:0.13``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import head, lines
from roledrift.ingest.values import integer, number

_START = re.compile(r"(?:^|[\s\x1b\]m])step:(-?\d{1,18}) - ")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def looks_like(path: Path) -> bool:
    """Whether the file's beginning or end holds a line of numbers."""
    if not path.is_file():
        return False
    if _START.search(head(path).decode("utf-8", "replace")):
        return True
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - (1 << 20), 0))
            return _START.search(file.read().decode("utf-8", "replace")) is not None
    except OSError:
        return False


def steps(path: Path, ledger: Ledger) -> Iterator[tuple[int, dict[str, object]]]:
    """Step and logged numbers of each line of numbers; other lines are what a console is for."""
    for line_number, raw in lines(path, ledger):
        if b"step:" not in raw:
            continue
        line = _COLOUR.sub("", raw.decode("utf-8", "replace"))
        start = _START.search(line)
        step = integer(start[1]) if start else None
        if start is None or step is None:
            continue
        logged: dict[str, object] = {}
        for part in line[start.end() :].split(" - "):
            key, colon, value = part.strip().rpartition(":")
            if colon and number(value) is not None:
                logged[key] = value
            else:
                ledger.skip("console number that cannot be read", f"{path.name}:{line_number}")
        if logged:
            yield step, logged
