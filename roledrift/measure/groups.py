"""Columns of spans to sums per group: the one place where rows are grouped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from roledrift.spans import Bools, Floats, Ints, SpanTable
from roledrift.sums import EVERYONE, Histogram, Key, Mean, Moments, Summable, Sums
from roledrift.workflow import Workflow

_Column = TypeVar("_Column")


@dataclass(frozen=True, slots=True)
class PerSpan:
    """A statistic that has one value per span; every span weighs the same.

    Attributes:
        values_N: One value per span.
        valid_N: Spans that have a value; None for all.
        quantiles: Keep bins too; the values are then whole numbers >= 0.
    """

    values_N: Floats | Ints
    valid_N: Bools | None = None
    quantiles: bool = False

    def over(self, rows: Ints) -> Summable:
        """Moments of the values in ``rows``."""
        kept = rows if self.valid_N is None else rows[self.valid_N[rows]]
        return Moments.of(self.values_N[kept], quantiles=self.quantiles)


@dataclass(frozen=True, slots=True)
class Pooled:
    """A statistic pooled over something smaller than a span (tokens), or a share of spans.

    Attributes:
        weights_N: How many things each span contributes.
        totals_N: Their sum.
    """

    weights_N: Floats | Ints | Bools
    totals_N: Floats | Ints | Bools

    def over(self, rows: Ints) -> Summable:
        """Count and sum over ``rows``."""
        return Mean(float(self.weights_N[rows].sum()), float(self.totals_N[rows].sum()))


@dataclass(frozen=True, slots=True)
class Ratios:
    """Probability ratios ``rho = exp(d)`` of tokens, from the sums and bins of each span.

    Attributes:
        tokens_N: Tokens of each span.
        totals_N: Their sum of ``rho``.
        squares_N: Their sum of ``rho²``.
        low_N: Smallest ``d``; ``high_N`` the largest.
        bins_N: Tokens per bin, ``(N, RATIO_BINS)``.
    """

    tokens_N: Ints
    totals_N: Floats
    squares_N: Floats
    low_N: Floats
    high_N: Floats
    bins_N: Ints

    def over(self, rows: Ints) -> Summable:
        """Moments and bins of the ratios of all tokens in ``rows``."""
        with np.errstate(over="ignore"):
            low, high = np.exp(self.low_N[rows].min()), np.exp(self.high_N[rows].max())
        return Moments(
            int(self.tokens_N[rows].sum()),
            float(self.totals_N[rows].sum()),
            float(self.squares_N[rows].sum()),
            float(low),
            float(high),
            Histogram.of_ratios(self.bins_N[rows].sum(0)),
        )


@dataclass(frozen=True, slots=True)
class OfRows:
    """A statistic of what several spans make up together, such as advantage groups.

    Attributes:
        over: Rows to the sum over what they make up.
    """

    over: Callable[[Ints], Summable]


Column = PerSpan | Pooled | Ratios | OfRows
Columns = Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class SpanProbe:
    """A :class:`roledrift.protocols.Probe` that derives columns once and sums them per group."""

    name: str
    needs: frozenset[str]
    workflow: Workflow
    read: Callable[[SpanTable], Columns]

    def measure(self, spans: SpanTable) -> Sums:
        """Sums of each statistic in each group; a group in which nothing was seen has no entry."""
        sums: Sums = {}
        if not self.needs <= spans.present:
            return sums
        columns = self.read(spans)
        for group, rows in groups(spans, self.workflow):
            for name, column in columns.items():
                value = column.over(rows)
                if value.n:
                    sums[Key(group, name)] = value
        return sums


def span_probe(
    *needs: str,
) -> Callable[[Callable[[SpanTable], Columns]], Callable[[Workflow], SpanProbe]]:
    """Turn a function from spans to columns into the maker of the probe of its name.

    Args:
        needs: Columns without which it measures nothing; the function is not called without them.
    """

    def maker(read: Callable[[SpanTable], Columns]) -> Callable[[Workflow], SpanProbe]:
        return lambda workflow: SpanProbe(read.__name__, frozenset(needs), workflow, read)

    return maker


def given(column: _Column | None) -> _Column:
    """Return a column that the probe needs, and so has."""
    assert column is not None
    return column


def groups(spans: SpanTable, workflow: Workflow) -> Iterator[tuple[str, Ints]]:
    """Groups of a record with their rows: roles, slots of roles that have several, and ``"*"``.

    A table that was made without the slots of the roles gets them from the workflow.
    """
    if not spans.slots and spans.roles == workflow.role_names:
        spans = replace(spans, slots=tuple(role.slots for role in workflow.roles))
    yield from spans.by_group()
    everyone = np.flatnonzero((spans.role_N >= 0) & (spans.role_N < len(spans.roles)))
    if everyone.size:
        yield EVERYONE, everyone
