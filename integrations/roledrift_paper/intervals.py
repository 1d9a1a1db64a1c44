"""Intervals of a mean over a few seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

FEWEST = 3
"""Of fewer values there is no interval: the spread of two says next to nothing."""


def of_mean(
    values: Sequence[float], limits: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float] | None:
    """The 95 % interval of a mean, by Student's t distribution.

    It rests on values that scatter roughly like a normal distribution; with so few seeds a
    bootstrap would be too narrow.

    Args:
        values: One per seed, or one difference per pair of seeds; not finite ones are left out.
        limits: What the mean cannot be below and above, such as 0 and 1 for an accuracy.

    Returns:
        ``mean -/+ t(0.975, n - 1) * sd / sqrt(n)``, cut to ``limits``. None for fewer than
        :data:`FEWEST` values, and for equal ones: they say nothing about the spread of others.
    """
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < FEWEST or min(finite) == max(finite):
        return None
    # Costs a tenth of a second, and most reports have no seeds to compare.
    from scipy.special import stdtrit

    half = float(stdtrit(len(finite) - 1, 0.975)) * stdev(finite) / math.sqrt(len(finite))
    middle = fmean(finite)
    return max(middle - half, limits[0]), min(middle + half, limits[1])
