"""Records of a run as tidy pandas frames: one row per statistic and step, one row per text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from roledrift import gram
from roledrift.records import GramRecord, Sample, StepRecord, StoredStats
from roledrift.sums import EVERYONE

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ("mean", "n", "sd", "low", "high", "p05", "p50", "p95", "p01", "p99")
"""Columns that hold a number; NaN where the statistic has none of that kind."""

COLUMNS = ("step", "scope", "role", "slot", "statistic", *NUMBERS)
"""Columns of :func:`frame_of`."""

TEXT_COLUMNS = (
    "step", "role", "slot", "turn", "policy", "prompt", "episode", "prompt_text", "text", "tokens",
    "finish", "reward", "advantage", "flags",
)  # fmt: skip
"""Columns of :func:`texts_of`."""

GRADIENT_NORM = "gradient_norm"
"""Statistic of a role or slot: the Euclidean norm of its gradient in one step."""

_Row = Mapping[str, Any]


def frame_of(records: Iterable[StepRecord], roles: Sequence[str]) -> pd.DataFrame:
    """Statistics as a tidy frame with the columns :data:`COLUMNS`.

    A row is unique by ``step``, ``scope``, ``role``, ``slot`` and ``statistic``.
    """
    import pandas as pd

    keys: dict[str, list[Any]] = {name: [] for name in ("step", "scope", "role", "slot")}
    names: list[str] = []
    numbers: dict[str, list[Any]] = {name: [] for name in NUMBERS}
    for record in records:
        for (scope, role, slot), stats in _parts(record, roles):
            count = len(stats)
            for key, value in zip(keys, (record.step, scope, role, slot), strict=True):
                keys[key] += [value] * count
            names += stats
            for number, column in numbers.items():
                column += [stat.get(number) for stat in stats.values()]
    frame = pd.DataFrame({"step": pd.Series(keys["step"], dtype="int64")})
    frame["scope"] = pd.Series(keys["scope"], dtype="str")
    frame["role"] = pd.Series(keys["role"], dtype="str")
    frame["slot"] = pd.Series(keys["slot"], dtype="Int64")
    frame["statistic"] = pd.Series(names, dtype="str")
    for number, column in numbers.items():
        # Numbers that are not finite are stored as words, which pandas reads like float() does.
        frame[number] = pd.Series(
            [math.nan if value is None else float(value) for value in column], dtype="float64"
        )
    return frame


def texts_of(samples: Iterable[Sample]) -> pd.DataFrame:
    """Texts as a frame with the columns :data:`TEXT_COLUMNS`; empty if there are none."""
    import pandas as pd

    rows = [[getattr(sample, name) for name in TEXT_COLUMNS] for sample in samples]
    kinds = {"step": "int64", "slot": "int64", "turn": "int64", "tokens": "int64",
             "reward": "float64", "advantage": "float64", "flags": "object"}  # fmt: skip
    columns = list(zip(*rows, strict=True)) or [()] * len(TEXT_COLUMNS)
    return pd.DataFrame(
        {
            name: pd.Series(list(values), dtype=kinds.get(name, "str"))
            for name, values in zip(TEXT_COLUMNS, columns, strict=True)
        }
    )


def place(group: str, roles: Sequence[str]) -> tuple[str, str, int | None]:
    """Scope, role and slot of a group of statistics.

    The name of a role is compared as a whole first: it may hold any character.
    """
    if group == EVERYONE:
        return "all roles", EVERYONE, None
    role, slash, slot = group.rpartition("/")
    if group not in roles and slash and slot.isdecimal():
        return "slot", role, int(slot)
    return "role", group, None


def _parts(
    record: StepRecord, roles: Sequence[str]
) -> Iterator[tuple[tuple[str, str, int | None], Mapping[str, _Row]]]:
    totals = {name: {"mean": value} for name, value in record.totals.items()}
    yield ("step", EVERYONE, None), totals
    for group, stats in record.groups.items():
        if isinstance(stats, StoredStats):
            yield place(group, roles), stats.body
        else:
            yield place(group, roles), {name: asdict(stat) for name, stat in stats.items()}
    for measured in record.gradients:
        for group, norm in gradient_norms(measured).items():
            yield place(group, roles), {GRADIENT_NORM: {"mean": norm}}


def gradient_norms(measured: GramRecord) -> dict[str, float]:
    """Norm of the gradient of each label, and of each role whose slots are the labels.

    ``||g||`` is the root of ``<g, g>``; for a role, of the sum over its slots of ``<g_i, g_j>``.
    """
    coarse = gram.by_role(measured)
    return {
        label: norm
        for record in (measured, coarse)
        for label, norm in zip(record.labels, gram.norms(record).tolist(), strict=True)
    }
