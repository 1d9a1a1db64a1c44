"""Intervals of a mean over a few seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

FEWEST = 3
"""Of fewer values there is no interval: the spread of two says next to nothing."""


def of_mean(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of a mean, by Student's t distribution.

    It rests on values that scatter roughly like a normal distribution; with so few seeds a
    bootstrap would be too narrow.

    Args:
        values: One per seed, or one difference per pair of seeds; not finite ones are left out.

    Returns:
        ``mean -/+ t(0.975, n - 1) * sd / sqrt(n)``; None of fewer than :data:`FEWEST` values.
    """
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < FEWEST:
        return None
    # Costs a tenth of a second, and most reports have no seeds to compare.
    from scipy.special import stdtrit

    half = float(stdtrit(len(finite) - 1, 0.975)) * stdev(finite) / math.sqrt(len(finite))
    middle = fmean(finite)
    return middle - half, middle + half
