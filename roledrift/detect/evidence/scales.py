"""Where values of a statistic are compared: what one unit of change means."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """A monotone transformation.

    Attributes:
        on: A value of the statistic, on the scale.
        back: The inverse.
        relative: True where changes on the scale are ratios of values.
    """

    on: Callable[[float], float]
    back: Callable[[float], float]
    relative: bool = False


_LARGEST = 1e100
"""Larger values, infinity among them, are read as this: sums and squares of them stay finite."""


def _identity(value: float) -> float:
    return min(max(value, -_LARGEST), _LARGEST)


def _log_tokens(value: float) -> float:
    return math.log(min(max(value, 0.5), _LARGEST))


def _log_tiny(value: float) -> float:
    return math.log(min(max(value, 1e-12), _LARGEST))


def _arcsine(value: float) -> float:
    return math.asin(math.sqrt(min(max(value, 0.0), 1.0)))


def _sine_squared(value: float) -> float:
    return math.sin(min(max(value, 0.0), math.pi / 2)) ** 2


LINEAR = Scale(_identity, _identity)
"""Rewards and accuracies."""

COUNTS = Scale(_log_tokens, math.exp, relative=True)
"""Ratios of lengths and counts; anything below half a token is half a token."""

RATIOS = Scale(_log_tiny, math.exp, relative=True)
"""Ratios of small positive numbers, whatever their size: distances, entropies, norms."""

SHARES = Scale(_arcsine, _sine_squared)
"""Shares. ``asin sqrt p`` has the standard deviation ``1 / (2 sqrt n)`` whatever ``p``."""
