"""Shares with exact intervals, medians with rank intervals, and a paired comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Share:
    """A share of runs with its exact (Clopper-Pearson) 95 % interval.

    Attributes:
        hits: Runs that count.
        n: Runs in all.
    """

    hits: int
    n: int

    @classmethod
    def of(cls, values: Iterable[bool]) -> Share:
        """The share of the true ones."""
        known = [bool(value) for value in values]
        return cls(sum(known), len(known))

    @property
    def value(self) -> float | None:
        """The share itself; None of nothing."""
        return self.hits / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper bound; 0 and 1 of nothing."""
        if not self.n:
            return 0.0, 1.0
        bounds = stats.binomtest(self.hits, self.n).proportion_ci(CONFIDENCE, method="exact")
        return float(bounds.low), float(bounds.high)

    def __str__(self) -> str:
        if not self.n:
            return "-"
        low, high = self.interval
        share = 100 * self.hits / self.n
        return f"{self.hits}/{self.n} = {share:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"

    def plain(self) -> dict[str, float | int | None]:
        """JSON-ready."""
        low, high = self.interval
        return {
            "hits": self.hits,
            "n": self.n,
            "share": None if self.value is None else round(self.value, 4),
            "low": round(low, 4),
            "high": round(high, 4),
        }


@dataclass(frozen=True, slots=True)
class Median:
    """A median with the rank interval of the binomial distribution, about 95 %.

    Attributes:
        value: The median; None of nothing. It may be infinite.
        low: Lower bound.
        high: Upper bound.
        n: Number of values.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Median:
        """The median of ``values``; infinite values are allowed and take part by their rank."""
        if not values:
            return cls(None, None, None, 0)
        ordered = sorted(values)
        n = len(ordered)
        below = int(stats.binom.ppf((1 - CONFIDENCE) / 2, n, 0.5))
        first = max(below - 1, 0)
        middle = (ordered[(n - 1) // 2], ordered[n // 2])
        value = middle[0] if np.isinf(middle).any() else sum(middle) / 2
        return cls(value, ordered[first], ordered[n - 1 - first], n)

    def text(self, factor: float = 1.0, unit: str = "") -> str:
        """The median in words."""
        if self.value is None or self.low is None or self.high is None:
            return "-"
        words = [
            "none" if np.isinf(series) else f"{series * factor:.3g}"
            for series in (self.value, self.low, self.high)
        ]
        after = "" if np.isinf(self.value) else unit
        return f"{words[0]}{after} [{words[1]}, {words[2]}] (n {self.n})"

    def plain(self) -> dict[str, float | int | None]:
        """JSON-ready; infinite values become None."""
        finite = [
            None if series is None or np.isinf(series) else round(float(series), 4)
            for series in (self.value, self.low, self.high)
        ]
        return {"median": finite[0], "low": finite[1], "high": finite[2], "n": self.n}


def mcnemar(ours: Sequence[bool], theirs: Sequence[bool]) -> tuple[int, int, float]:
    """Exact McNemar test of two methods on the same runs.

    Returns:
        Runs that only ours finds, runs that only theirs finds, and the two-sided p-value.
    """
    gained = sum(a and not b for a, b in zip(ours, theirs, strict=True))
    lost = sum(b and not a for a, b in zip(ours, theirs, strict=True))
    if gained + lost == 0:
        return 0, 0, 1.0
    return gained, lost, float(stats.binomtest(gained, gained + lost).pvalue)
