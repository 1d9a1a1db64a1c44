"""Sums that can be added over micro-batches, ranks and writers.

Every statistic of the library is a mean of something over tokens, spans or groups. What travels is
therefore never the mean but its sum and its count, so that ``measure(a) + measure(b)`` equals
``measure(a ++ b)`` and no mean of means is ever formed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

EVERYONE = "*"
"""Group name for statistics over all roles."""


class Key(NamedTuple):
    """Address of one sum.

    Attributes:
        group: ``"generator"`` (a role), ``"generator/0"`` (a slot of it) or ``"*"`` (all roles).
        name: Name of the statistic, for example ``"length"`` or ``"update.chi2"``.
    """

    group: str
    name: str


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean whose spread is not known, for example a statistic pooled over tokens.

    Attributes:
        n: Number (or total weight) of the things averaged.
        total: Their sum.
    """

    n: float
    total: float

    def __add__(self, other: Mean) -> Mean:
        return Mean(self.n + other.n, self.total + other.total)


_EXACT = 128
_PER_OCTAVE = 16

Scale = Literal["counts", "ratios"]

RATIO_EDGES: tuple[float, ...] = tuple(1e-4 * 10 ** (step / 6) for step in range(31))
"""Bounds of ``|d|`` between the bins of log-ratios: 1e-4 to 10, six per decade."""

RATIO_BINS = 2 * len(RATIO_EDGES) + 1
"""31 bins of negative log-ratios, one of ``|d| < 1e-4``, 31 of positive ones."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values in fixed bins, with quantiles. The bins never move: histograms just add.

    On the scale ``counts`` (non-negative whole numbers such as lengths) there is one bin per value
    up to 128, then 16 per octave: a quantile is exact up to 128 and within 2.2 % above, rounded to
    a whole number. On the scale ``ratios`` (of probabilities) the bins are those of the log-ratio
    ``d`` between :data:`RATIO_EDGES`; the quantile of ``d`` is within 22 % of it between 1e-4 and
    10, which for a ratio near 1 is much closer still (1.10 is known to 0.02).

    Attributes:
        counts: Number of values per bin; bins without values are left out.
        scale: Which bins.
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    scale: Scale = "counts"

    @classmethod
    def of(cls, values_N: NDArray[np.generic]) -> Histogram:
        """Histogram of a one-dimensional array of numbers >= 0."""
        x = np.maximum(np.asarray(values_N, dtype=np.float64), 0.0)
        large = _EXACT + np.floor(np.log2(np.maximum(x, _EXACT) / _EXACT) * _PER_OCTAVE)
        bins, counts = np.unique(
            np.where(x <= _EXACT, np.rint(x), large + 1).astype(np.int64), return_counts=True
        )
        return cls(dict(zip(bins.tolist(), counts.tolist(), strict=True)))

    @classmethod
    def of_ratios(cls, counts_R: NDArray[np.integer[Any]]) -> Histogram:
        """Histogram of ratios from the number of values in each of the ``RATIO_BINS`` bins."""
        bins = np.flatnonzero(counts_R)
        return cls(dict(zip(bins.tolist(), counts_R[bins].tolist(), strict=True)), "ratios")

    def __add__(self, other: Histogram) -> Histogram:
        if self.scale != other.scale:
            raise TypeError(f"cannot add bins of {other.scale} to bins of {self.scale}")
        merged = dict(self.counts)
        for index, count in other.counts.items():
            merged[index] = merged.get(index, 0) + count
        return Histogram(dict(sorted(merged.items())), self.scale)

    @property
    def n(self) -> int:
        """Number of values counted."""
        return sum(self.counts.values())

    def quantile(self, q: float) -> float:
        """The value below which a share ``q`` in [0, 1] lies (lower quantile); NaN if empty."""
        need = max(q * self.n, 1)
        seen = 0
        for index in sorted(self.counts):
            seen += self.counts[index]
            if seen >= need:
                return _bin_ratio(index) if self.scale == "ratios" else _bin_value(index)
        return math.nan


def _bin_ratio(index: int) -> float:
    """``exp(d)`` with ``d`` the geometric middle of its bin."""
    away = index - len(RATIO_EDGES)
    if not away:
        return 1.0
    size = RATIO_EDGES[abs(away) - 1] * 10 ** (1 / 12)
    return math.exp(math.copysign(size, away))


def _bin_value(index: int) -> float:
    if index <= _EXACT:
        return float(index)
    return float(round(_EXACT * 2 ** ((index - 1 - _EXACT + 0.5) / _PER_OCTAVE)))


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, sum, sum of squares and range of row values, with bins where quantiles are wanted.

    Non-finite values are signal, not noise: they propagate into every field they touch.
    """

    n: int
    total: float
    square: float
    low: float
    high: float
    bins: Histogram | None = None

    @classmethod
    def of(cls, values_N: NDArray[Any], *, quantiles: bool = False) -> Moments:
        """Moments of a one-dimensional array (possibly empty).

        Args:
            values_N: Row values; whole numbers >= 0 if quantiles are wanted.
            quantiles: Keep bins too.
        """
        x = np.asarray(values_N, dtype=np.float64)
        bins = Histogram.of(x) if quantiles else None
        if x.size == 0:
            return cls(0, 0.0, 0.0, math.inf, -math.inf, bins)
        square = float(np.square(x).sum())
        return cls(int(x.size), float(x.sum()), square, float(x.min()), float(x.max()), bins)

    def __add__(self, other: Moments) -> Moments:
        # np.minimum keeps a NaN; Python's min() keeps whichever argument comes first.
        low = float(np.minimum(self.low, other.low))
        high = float(np.maximum(self.high, other.high))
        both = self.bins is not None and other.bins is not None
        bins = self.bins + other.bins if both else None  # type: ignore[operator]
        n, total, square = self.n + other.n, self.total + other.total, self.square + other.square
        return Moments(n, total, square, low, high, bins)


@dataclass(frozen=True, slots=True)
class Distinct:
    """How many different things were seen.

    Attributes:
        n: Number of things seen.
        kinds: The different ones, as numbers that are the same in every process.
    """

    n: int
    kinds: frozenset[int]

    def __add__(self, other: Distinct) -> Distinct:
        return Distinct(self.n + other.n, self.kinds | other.kinds)


@dataclass(frozen=True, slots=True)
class Profile:
    """What kinds of words texts are made of; every text weighs the same, however long it is.

    Attributes:
        n: Number of texts.
        total: Words in all of them.
        shares: Per bucket, the sum over texts of the share of a text's words that fall into it.
    """

    n: float
    total: float
    shares: tuple[float, ...]

    def __add__(self, other: Profile) -> Profile:
        both = zip(self.shares, other.shares, strict=True)
        shares = tuple(own + theirs for own, theirs in both)
        return Profile(self.n + other.n, self.total + other.total, shares)


@dataclass(frozen=True, slots=True)
class Gram:
    """Inner products of the gradients of several groups, summed over optimizer steps.

    Attributes:
        labels: Group names; a role or ``role/slot``.
        products: ``products[i, j] = sum over steps of <g_i, g_j>``, shape ``(G, G)``.
        n: Number of optimizer steps summed.
    """

    labels: tuple[str, ...]
    products: NDArray[np.float64]
    n: int = 1

    def __post_init__(self) -> None:
        size = len(self.labels)
        if self.products.shape != (size, size):
            raise ValueError(
                f"{size} labels need a ({size}, {size}) matrix, got {self.products.shape}"
            )

    def __add__(self, other: Gram) -> Gram:
        labels = tuple(dict.fromkeys(self.labels + other.labels))
        total = np.zeros((len(labels), len(labels)))
        for gram in (self, other):
            where = [labels.index(label) for label in gram.labels]
            total[np.ix_(where, where)] += gram.products
        return Gram(labels, total, self.n + other.n)


Summable = Mean | Moments | Distinct | Profile
Sums = dict[Key, Summable]


def add(parts: Iterable[Sums]) -> Sums:
    """Add sums key by key; a missing key counts as nothing.

    Raises:
        TypeError: If two parts hold different kinds of sum under one key.
    """
    total: Sums = {}
    for part in parts:
        for key, value in part.items():
            total[key] = _plus(key, total[key], value) if key in total else value
    return total


def counted(name: str, times: Mapping[str, int], groups: Iterable[str]) -> Sums:
    """Count how often something happened to each group; 0 if ``times`` does not name it.

    As moments, because ranks count different things: ``high`` is that of the rank with most.
    """
    known = {group: times.get(group, 0) for group in groups}
    return {Key(group, name): Moments(1, n, n**2, n, n) for group, n in known.items()}


def _plus(key: Key, known: Summable, value: Summable) -> Summable:
    if type(known) is not type(value):
        kinds = f"{type(value).__name__} to {type(known).__name__}"
        raise TypeError(f"cannot add {kinds} under {key.group}:{key.name}")
    total: Summable = known + value  # type: ignore[operator]
    return total
