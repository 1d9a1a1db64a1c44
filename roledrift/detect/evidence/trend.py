"""Where a series has been going: its thinned history, and the gain over its last part.

A run of 5,000 steps is kept as at most 128 bins of equally many records, so that a trend can be
looked at in every record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_BINS = 128
_LARGEST = 1e100
_ENOUGH = 6
"""Bins that a trend needs."""

SURE = 2.6
"""Standard errors of a bound: one-sided 0.5 %, because trends are looked at again and again."""

_CORRELATED = 1.3
"""Neighbouring records are alike, so errors are larger than those of independent ones."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gain:
    """A straight line through the last part of a series.

    Attributes:
        change: Slope times width: how much the line gained over the part.
        error: Standard error of ``change``.
        mean: Mean of the part.
        noise: Standard deviation of one record about the line.
        first: Step at which the part begins; ``last``: where it ends.
        records: Records in the part.
    """

    change: float
    error: float
    mean: float
    noise: float
    first: float
    last: float
    records: int

    @property
    def most(self) -> float:
        """Upper bound of the gain."""
        return self.change + SURE * self.error

    @property
    def least(self) -> float:
        """Lower bound of the gain."""
        return self.change - SURE * self.error


class Thinned:
    """A series in bins of equally many records, thinned as it grows."""

    def __init__(self) -> None:
        self._steps: list[float] = []
        self._values: list[float] = []
        self._size = 1
        self._step = self._value = 0.0
        self._open = 0
        self._arrays: tuple[Array, Array] | None = None
        self._gains: dict[float, Gain | None] = {}
        self._range: tuple[float, float] | None = None
        self.bins = 0
        """Counts the bins that were ever completed: nothing else changes before the next one."""
        self.records = 0

    def add(self, step: int, value: float) -> None:
        """Take one record; a value that is not finite, or whose square is not, is passed over."""
        if not -_LARGEST < value < _LARGEST:
            return
        self.records += 1
        self._step += step
        self._value += value
        self._open += 1
        if self._open < self._size:
            return
        self._steps.append(self._step / self._open)
        self._values.append(self._value / self._open)
        self._step = self._value = 0.0
        self._open = 0
        self._gains.clear()
        self._range = self._arrays = None
        self.bins += 1
        if len(self._steps) == _BINS:
            self._steps, self._values = _halved(self._steps), _halved(self._values)
            self._size *= 2

    def arrays(self, part: float = 1.0) -> tuple[Array, Array]:
        """Steps and values of the last ``part`` of the bins."""
        if self._arrays is None:
            self._arrays = np.array(self._steps), np.array(self._values)
        first = math.floor(len(self._steps) * (1 - part))
        return self._arrays[0][first:], self._arrays[1][first:]

    def gain(self, part: float = 1.0) -> Gain | None:
        """The line through the last ``part`` of the series; None while it has too few bins.

        Least squares. The noise is that of differences between neighbouring bins, which a bend of
        the curve leaves alone.
        """
        if part not in self._gains:
            self._gains[part] = self._gain(part)
        return self._gains[part]

    def _gain(self, part: float) -> Gain | None:
        steps, values = self.arrays(part)
        n = steps.size
        width = float(steps[-1] - steps[0]) if n else 0.0
        if n < _ENOUGH or width <= 0:
            return None
        # add.reduce is what mean() calls: most of the time for so few numbers goes into the rest.
        x = steps - np.add.reduce(steps) / n
        squares = float(x @ x)
        slope = float(x @ values) / squares
        jumps = values[1:] - values[:-1]
        noise = math.sqrt(np.add.reduce(jumps * jumps) / (n - 1) / 2) * _CORRELATED
        return Gain(
            change=slope * width,
            error=noise / math.sqrt(squares) * width,
            mean=float(np.add.reduce(values)) / n,
            noise=noise * math.sqrt(self._size),
            first=float(steps[0]),
            last=float(steps[-1]),
            records=n * self._size,
        )

    def range(self) -> tuple[float, float]:
        """The lowest and the highest mean of an eighth of the series."""
        if self._range is None:
            values, parts = self._values, min(8, max(1, len(self._values) // 2))
            edges = [round(i * len(values) / parts) for i in range(parts + 1)]
            means = [math.fsum(values[a:b]) / (b - a) for a, b in pairwise(edges) if b > a]
            self._range = (min(means), max(means)) if means else (math.nan, math.nan)
        return self._range


def _halved(values: list[float]) -> list[float]:
    return [(a + b) / 2 for a, b in zip(values[::2], values[1::2], strict=True)]
