"""Round numbers on an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence


def linear(
    low: float, high: float, most: int, steps: Sequence[float] = (1, 2, 2.5, 5)
) -> list[float]:
    """At most ``most + 1`` round numbers from ``low`` to ``high``, evenly spaced.

    Args:
        low: Lower end.
        high: Upper end; not below ``low``.
        most: Most intervals.
        steps: Allowed leading digits of the spacing, ascending, in [1, 10).
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    spacing = next((step * power for step in (*steps, 10) if step * power >= raw * (1 - 1e-9)), raw)
    first = math.ceil(low / spacing - 1e-9)
    last = math.floor(high / spacing + 1e-9)
    return [_round(index * spacing) for index in range(first, last + 1)]


def whole(low: float, high: float, most: int) -> list[int]:
    """At most ``most + 1`` round whole numbers from ``low`` to ``high``."""
    found = linear(low, high, most, (1, 2, 5))
    return sorted({int(value) for value in found if value == int(value)})


def logarithmic(low: float, high: float, most: int = 5) -> list[float]:
    """Powers of ten from ``low`` to ``high``, with 3 or 2 and 5 in between where there is room."""
    if not (math.isfinite(low) and math.isfinite(high)) or low <= 0 or high <= low:
        return []
    decades = math.log10(high / low)
    digits = (1.0,) if decades > 2.2 else ((1.0, 3.0) if decades > 1 else (1.0, 2.0, 5.0))
    stride = max(1, math.ceil(decades / most))
    found = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        if power % stride == 0:
            found += [digit * 10.0**power for digit in digits]
    return [_round(value) for value in found if low * 0.999 <= value <= high * 1.001]


def _round(value: float) -> float:
    return float(f"{value:.6g}")
