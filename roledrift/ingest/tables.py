"""Rows of Python values to span tables: one table per set of columns that the rows have."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter, is_
from typing import Any

import numpy as np

from roledrift.ingest.rows import SpanRow
from roledrift.spans import Comparison, SpanTable, concat
from roledrift.sums import EVERYONE, Key, Mean, Sums, add

_NUMBERS: tuple[tuple[str, type[Any]], ...] = (
    ("slot", np.int64),
    ("turn", np.int64),
    ("tokens", np.int64),
    ("truncated", np.bool_),
    ("reward", np.float64),
    ("advantage", np.float64),
    ("scored", np.int64),
    ("nll", np.float64),
    ("entropy", np.float64),
    ("nonfinite", np.int64),
)
_NAMES = ("prompt", "episode", "group")
_ALL = (*(name for name, _ in _NUMBERS), *_NAMES, "text")
_VALUES = attrgetter(*_ALL)
_ABSENT = partial(is_, None)
_SUMS = ("a", "b", "chi2", "k3", "peak")
_EACH = 2
"""Slots stated for every role, so that ``role/slot`` is measured; the importer drops what is not
needed once it has seen all roles."""


def tables_of(rows: Sequence[SpanRow], roles: tuple[str, ...]) -> Iterator[SpanTable]:
    """Tables that hold ``rows``. A value that a row lacks stays missing: it is in another table."""
    layouts: dict[Any, list[SpanRow]] = {}
    for row in rows:
        pairs = tuple(
            (pair.kind, pair.temperature_a, pair.temperature_b, pair.steps_between)
            for pair in row.pairs
        )
        layout = (*map(_ABSENT, _VALUES(row)), pairs)
        layouts.setdefault(layout, []).append(row)
    for alike in layouts.values():
        yield _table(alike, roles)


def _table(rows: list[SpanRow], roles: tuple[str, ...]) -> SpanTable:
    first = rows[0]
    index = {role: number for number, role in enumerate(roles)}
    columns: dict[str, Any] = {
        f"{name}_N": np.array([getattr(row, name) for row in rows], dtype=kind)
        for name, kind in _NUMBERS
        if getattr(first, name) is not None
    }
    for name in _NAMES:
        if getattr(first, name) is not None:
            columns[f"{name}_N"] = np.array([_stable(getattr(row, name)) for row in rows])
    if first.text is not None:
        columns["text_N"] = tuple(row.text for row in rows)
    comparisons = tuple(_comparison(rows, number) for number in range(len(first.pairs)))
    return SpanTable(
        roles=roles,
        slots=(_EACH,) * len(roles),
        role_N=np.array([index[row.role] for row in rows], dtype=np.int64),
        comparisons=comparisons,
        **columns,
    )


def stacked(tables: Sequence[SpanTable], roles: tuple[str, ...]) -> Iterator[SpanTable]:
    """Tables of one layout as one, so that no advantage group is cut through."""
    layouts: dict[object, list[SpanTable]] = {}
    for table in tables:
        pairs = tuple(
            (compared.kind, compared.temperature_a, compared.temperature_b, compared.steps_between)
            for compared in table.comparisons
        )
        restated = replace(table, roles=roles, slots=(_EACH,) * len(roles))
        layouts.setdefault((table.present, pairs), []).append(restated)
    for alike in layouts.values():
        yield concat(alike)


def _comparison(rows: list[SpanRow], number: int) -> Comparison:
    compared = [row.pairs[number] for row in rows]
    sums: dict[str, Any] = {
        f"{name}_N": np.array([getattr(part, name) for part in compared], dtype=np.float64)
        for name in _SUMS
    }
    return Comparison(
        kind=compared[0].kind,
        tokens_N=np.array([part.tokens for part in compared], dtype=np.int64),
        temperature_a=compared[0].temperature_a,
        temperature_b=compared[0].temperature_b,
        steps_between=compared[0].steps_between,
        **sums,
    )


def shares_of(rows: Sequence[SpanRow]) -> Iterator[Sums]:
    """Sums of the rows' yes-or-no facts, per role, slot and for everyone."""
    counts: dict[Key, list[float]] = {}
    for row in rows:
        for name, holds in row.shares.items():
            groups = [row.role, EVERYONE]
            if row.slot is not None:
                groups.append(f"{row.role}/{row.slot}")
            for group in groups:
                count = counts.setdefault(Key(group, name), [0.0, 0.0])
                count[0] += 1
                count[1] += holds
    yield add([{key: Mean(n, total) for key, (n, total) in counts.items()}])


def _stable(name: str) -> int:
    """The same whole number for the same name in every process; clashes are one in 10**9."""
    raw = name.encode("utf-8", "surrogatepass")
    return zlib.crc32(raw) << 31 | (zlib.adler32(raw) & 0x7FFFFFFF)
