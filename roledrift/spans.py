"""One row per span: per trainable output of one role.

Torch is needed only to turn token tensors into these rows; everything after this table is numpy on
a few thousand rows, so the same probe and the same detector run live and on a log read on a laptop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roledrift.errors import CaptureError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

Kind = Literal["rollout", "old", "update", "reference"]
"""Which two log-probabilities a :class:`Comparison` holds.

``rollout``: the trainer's against the rollout engine's (engine mismatch and staleness).
``old``: the current policy's against the one at the start of the iteration (the PPO ratio).
``update``: after the optimizer step against before it (what the step did).
``reference``: the policy's against a frozen reference model's.
"""


_SIDES: Mapping[Kind, str] = {
    "rollout": "policy vs rollout engine",
    "old": "policy vs policy at the start of the iteration",
    "update": "after vs before the optimizer step",
    "reference": "policy vs reference",
}


class Provenance(NamedTuple):
    """How the two sides of a comparison came about; None is unknown."""

    temperature_a: float | None
    temperature_b: float | None
    steps_between: int | None


def describe(kind: Kind, sources: Collection[Provenance]) -> str:
    """Say in words what a comparison compares, for the record and the report.

    ``"<a> vs <b>, T=<of both> | T=<of a> vs T=<of b>, <n> step(s) between"``, for example
    ``"after vs before the optimizer step, T=1.0, 1 step between"``. Where several batches of one
    step differ, their temperatures are joined by "or" and their steps are a range ("0 to 3").

    Args:
        kind: Which pair.
        sources: How each batch of it came about; at least one.
    """
    heat = sorted({_temperatures(source) for source in sources})
    parts = [_SIDES[kind], " or ".join(heat)]
    known = {source.steps_between for source in sources if source.steps_between is not None}
    if known:
        low, high = min(known), max(known)
        count = str(low) if low == high else f"{low} to {high}"
        parts.append(f"{count} step{'' if count == '1' else 's'} between")
    elif kind != "reference":
        parts.append("steps between unknown")
    return ", ".join(parts)


def _temperatures(source: Provenance) -> str:
    a, b = (
        "T unknown" if value is None else f"T={float(value)!r}"
        for value in (source.temperature_a, source.temperature_b)
    )
    return a if a == b else f"{a} vs {b}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Per-span sums of what two policies say about the same tokens.

    With ``a`` the log-probability under the policy in question and ``b`` under the one it is
    compared with, ``d = a - b`` and ``rho = exp(clip(d, -20, 20))``, the columns are sums over the
    span's trainable tokens. These sums are sufficient for chi², k1, k3, both perplexities and the
    sequence chi².

    Attributes:
        kind: Which pair.
        tokens_N: Tokens with both log-probabilities finite, ``(N,)``.
        a_N: Sum of ``a`` in nats.
        b_N: Sum of ``b`` in nats.
        chi2_N: Sum of ``rho² - 1``.
        k3_N: Sum of ``exp(d) - d - 1``.
        peak_N: Largest ``|d|`` in the span; 0 for a span without tokens.
        temperature_a: Sampling temperature at which ``a`` was computed, None if unknown.
        temperature_b: The same for ``b``.
        steps_between: Optimizer steps between ``b`` and ``a``; None if unknown.
        low_N: Smallest ``d`` in the span, ``inf`` without tokens; None if not captured.
        high_N: Largest ``d``, ``-inf`` without tokens; None if not captured.
        bins_N: Tokens per bin of ``d``, ``(N, RATIO_BINS)``, see
            :data:`roledrift.sums.RATIO_EDGES`; None if not captured.
    """

    kind: Kind
    tokens_N: Ints
    a_N: Floats
    b_N: Floats
    chi2_N: Floats
    k3_N: Floats
    peak_N: Floats
    temperature_a: float | None = None
    temperature_b: float | None = None
    steps_between: int | None = None
    low_N: Floats | None = None
    high_N: Floats | None = None
    bins_N: Ints | None = None

    @property
    def source(self) -> Provenance:
        """How the two sides came about."""
        return Provenance(self.temperature_a, self.temperature_b, self.steps_between)

    @property
    def comparable(self) -> bool:
        """False if the two sides are known to be at different temperatures.

        Log-probabilities at different temperatures differ without any drift: the floor moves with
        the policy's sharpness, so statistics of such a pair are refused, not averaged.
        """
        a, b = self.temperature_a, self.temperature_b
        return a is None or b is None or abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1.0)


@dataclass(frozen=True, slots=True)
class SpanTable:
    """Rows of spans, column by column. Only ``role_N`` is required.

    A missing column is None and stays missing: probes say what they lack instead of reading zeros.

    Attributes:
        roles: Role names in registry order.
        slots: Slots of each role in the workflow, aligned with ``roles``; empty if not known. It
            comes from the workflow and not from the rows, so that a part of a table has the same
            groups as the whole.
        role_N: Index into ``roles``; -1 for a row whose role is not in the registry.
        slot_N: Copy of the role within its episode, from 0.
        turn_N: Turn within the episode, from 0.
        prompt_N: Number of the problem.
        episode_N: Number of the episode.
        group_N: Number of the advantage group (GRPO group).
        tokens_N: Length of the output in trainable tokens.
        truncated_N: True where the length limit cut the span.
        reward_N: Reward of the span.
        advantage_N: Advantage of the span (mean over its tokens).
        scored_N: Tokens that ``nll_N``, ``entropy_N`` and ``clipped_N`` are sums over. It is apart
            from ``tokens_N`` so that a table of re-scored spans does not count outputs again.
        nll_N: Sum over tokens of ``-log p`` under the policy being trained, in nats.
        entropy_N: Sum over tokens of the policy's entropy, in nats.
        clipped_N: Number of tokens whose clipped loss was active.
        nonfinite_N: Trainable tokens whose log-probability or entropy was not finite.
        comparisons: At most one per kind.
        text_N: Decoded text, None where it was not kept.

    Raises:
        CaptureError: If two columns have different lengths.
    """

    roles: tuple[str, ...]
    role_N: Ints
    slot_N: Ints | None = None
    turn_N: Ints | None = None
    prompt_N: Ints | None = None
    episode_N: Ints | None = None
    group_N: Ints | None = None
    tokens_N: Ints | None = None
    truncated_N: Bools | None = None
    reward_N: Floats | None = None
    advantage_N: Floats | None = None
    scored_N: Ints | None = None
    nll_N: Floats | None = None
    entropy_N: Floats | None = None
    clipped_N: Floats | None = None
    nonfinite_N: Ints | None = None
    comparisons: tuple[Comparison, ...] = ()
    text_N: tuple[str | None, ...] | None = None
    slots: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        n = len(self)
        wrong = {
            name: len(column)
            for name, column in self._columns()
            if column is not None and len(column) != n
        }
        for comparison in self.comparisons:
            if len(comparison.a_N) != n:
                wrong[f"comparison {comparison.kind!r}"] = len(comparison.a_N)
        if wrong:
            raise CaptureError(
                f"role_N has {n} rows, but {wrong}: every column needs one value per span"
            )
        kinds = [comparison.kind for comparison in self.comparisons]
        if len(set(kinds)) != len(kinds):
            raise CaptureError(f"comparisons {kinds} repeat a kind: hand over one per kind")

    def __len__(self) -> int:
        return len(self.role_N)

    def _columns(self) -> Iterator[tuple[str, Any]]:
        for column in fields(self):
            if column.name.endswith("_N"):
                yield column.name, getattr(self, column.name)

    @property
    def present(self) -> frozenset[str]:
        """Names of the columns that are there; a comparison appears under its kind."""
        columns = {name for name, column in self._columns() if column is not None}
        return frozenset(columns | {comparison.kind for comparison in self.comparisons})

    def comparison(self, kind: Kind) -> Comparison | None:
        """The comparison of that kind, None if it was not captured."""
        return next(
            (comparison for comparison in self.comparisons if comparison.kind == kind), None
        )

    def by_role(self) -> Iterator[tuple[str, Ints]]:
        """Role names with the indices of their rows; roles without rows are left out."""
        for index, name in enumerate(self.roles):
            rows = np.flatnonzero(self.role_N == index)
            if rows.size:
                yield name, rows

    def by_group(self) -> Iterator[tuple[str, Ints]]:
        """Roles, then ``role/slot`` for roles with several slots, with their row indices."""
        for name, rows in self.by_role():
            yield name, rows
            if self.slot_N is None or self.slots_of(name) < 2:
                continue
            for slot in np.unique(self.slot_N[rows]).tolist():
                yield f"{name}/{slot}", rows[self.slot_N[rows] == slot]

    def slots_of(self, role: str) -> int:
        """Slots that ``role`` has in the workflow; 1 if the table does not know."""
        return self.slots[self.roles.index(role)] if self.slots else 1

    def select(self, rows: Ints | Bools) -> SpanTable:
        """The table with only ``rows`` (indices or a mask), in that order."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        columns: dict[str, Any] = {
            name: tuple(column[i] for i in index.tolist()) if name == "text_N" else column[index]
            for name, column in self._columns()
            if column is not None
        }
        comparisons = tuple(_select(comparison, index) for comparison in self.comparisons)
        return replace(self, **columns, comparisons=comparisons)


def _select(comparison: Comparison, index: Ints | Bools) -> Comparison:
    columns: dict[str, Any] = {
        name: getattr(comparison, name)[index] for name in _sums_of(comparison)
    }
    return replace(comparison, **columns)


def _sums_of(comparison: Comparison) -> list[str]:
    names = (column.name for column in fields(comparison) if column.name.endswith("_N"))
    return [name for name in names if getattr(comparison, name) is not None]


def concat(tables: Sequence[SpanTable]) -> SpanTable:
    """Stack tables with the same roles, columns and comparison sources.

    Raises:
        CaptureError: If there is nothing to stack, or the tables differ in what they hold.
    """
    if not tables:
        raise CaptureError("concat needs at least one table")
    first = tables[0]
    for table in tables[1:]:
        same = (table.roles, table.slots, table.present) == (
            first.roles,
            first.slots,
            first.present,
        )
        if not same:
            extra = sorted(table.present ^ first.present)
            raise CaptureError(
                f"tables differ in their roles or in the columns {extra}: observe them separately"
            )
    columns: dict[str, Any] = {}
    for name, column in first._columns():
        if name == "text_N" and column is not None:
            columns[name] = tuple(text for table in tables for text in getattr(table, name))
        elif column is not None:
            columns[name] = np.concatenate([getattr(table, name) for table in tables])
    kinds = [comparison.kind for comparison in first.comparisons]
    comparisons = tuple(_stack([table.comparison(kind) for table in tables]) for kind in kinds)
    return replace(first, **columns, comparisons=comparisons)


def _stack(parts: Sequence[Comparison | None]) -> Comparison:
    given = [part for part in parts if part is not None]
    first = given[0]
    columns: dict[str, Any] = {}
    for name in _sums_of(first):
        values = [getattr(part, name) for part in given]
        # Of an optional column that one part lacks, the whole lacks it.
        columns[name] = None if any(value is None for value in values) else np.concatenate(values)
    return replace(first, **columns)
