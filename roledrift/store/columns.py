"""Nested rows as columns and back: many records of one shape in little space.

A column is named by its path, the keys from the outermost to the innermost joined by tabs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def pack(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Nested rows as columns: path to one value per row, None where a row lacks it."""
    columns: dict[str, list[Any]] = {}
    for number, row in enumerate(rows):
        for path, value in _flat(row):
            columns.setdefault(path, [None] * len(rows))[number] = value
    same = {path: values[0] for path, values in columns.items() if _constant(values)}
    varying = {path: values for path, values in columns.items() if path not in same}
    return {"rows": len(rows), "same": same, "varying": varying}


def unpack(packed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows that :func:`pack` was given."""
    rows: list[dict[str, Any]] = [{} for _ in range(packed["rows"])]
    columns = {path: [value] * len(rows) for path, value in packed["same"].items()}
    for path, values in (columns | packed["varying"]).items():
        *above, last = path.split("\t")
        for row, value in zip(rows, values, strict=True):
            if value is not None:
                for part in above:
                    row = row.setdefault(part, {})
                row[last] = value
    return rows


def _constant(values: list[Any]) -> bool:
    return all(value == values[0] and type(value) is type(values[0]) for value in values)


def _flat(value: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            leaves += _flat(inner, f"{path}{key}\t")
        else:
            leaves.append((f"{path}{key}", inner))
    return leaves
