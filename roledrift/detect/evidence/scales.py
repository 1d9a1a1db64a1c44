"""Where values of a statistic are compared: what one unit of change means."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

ABSURD = 1e100
"""From here on, as with NaN and infinity, a number is no measurement; squares of it overflow."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A monotone transformation: values ``on`` the scale, and ``back`` from it."""

    on: Callable[[float], float]
    back: Callable[[float], float]


def _within(value: float, least: float, most: float) -> float:
    # Comparisons take a third of the time of min and max, and every value comes through here.
    return least if value < least else most if value > most else value


LINEAR = Scale(lambda value: _within(value, -ABSURD, ABSURD), lambda x: _within(x, -ABSURD, ABSURD))
"""Rewards and accuracies."""

COUNTS = Scale(lambda value: math.log(_within(value, 0.5, ABSURD)), math.exp)
"""Ratios of lengths and counts; anything below half a token is half a token."""

RATIOS = Scale(lambda value: math.log(_within(value, 1e-12, ABSURD)), math.exp)
"""Ratios of small positive numbers, whatever their size: distances, entropies, norms."""

SHARES = Scale(
    lambda value: math.asin(math.sqrt(_within(value, 0.0, 1.0))),
    lambda x: math.sin(min(max(x, 0.0), math.pi / 2)) ** 2,
)
"""Shares. ``asin sqrt p`` has the standard deviation ``1 / (2 sqrt n)`` whatever ``p``."""
