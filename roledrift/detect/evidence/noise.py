"""The noise of a series, told from its neighbours."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque


class Noise:
    """Standard deviation of the noise of a series, from the differences between neighbours.

    A trend leaves those alone and a shift changes one of them once. The median absolute difference
    of independent normal values is 0.954 standard deviations.
    """

    def __init__(self, remembered: int) -> None:
        self._jumps: deque[float] = deque(maxlen=remembered)
        self._sorted: list[float] = []
        self._last: float | None = None
        self.n = 0
        """Differences seen, up to those remembered."""

    def observe(self, x: float) -> None:
        """Take one value; it must be finite."""
        if self._last is not None:
            jumps, ranked = self._jumps, self._sorted
            if self.n == jumps.maxlen:
                del ranked[bisect_left(ranked, jumps[0])]
            jump = abs(x - self._last)
            jumps.append(jump)
            insort(ranked, jump)
            self.n = len(ranked)
        self._last = x

    @property
    def sd(self) -> float:
        """The standard deviation of one value; 0 before there are two."""
        if not self.n:
            return 0.0
        half = self.n // 2
        middle = self._sorted[half]
        return (middle if self.n % 2 else (self._sorted[half - 1] + middle) / 2) / 0.954
