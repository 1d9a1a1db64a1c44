"""Several runs in one curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from roledrift.report.model import Line


def banded(label: str, curves: Sequence[Mapping[int, float]], tone: int) -> Line | None:
    """Mean of several curves, with a band from the lowest to the highest; None without data."""
    recorded = [curve for curve in curves if curve]
    values = {
        step: [c[step] for c in recorded if step in c and math.isfinite(c[step])]
        for step in sorted({step for curve in recorded for step in curve})
    }
    # A seed that ended early would make the mean jump: a step counts only where most have it.
    steps = [step for step, some in values.items() if some and 2 * len(some) >= len(recorded)]
    if not steps:
        return None
    middle = tuple(sum(values[step]) / len(values[step]) for step in steps)
    if len(recorded) == 1:
        return Line(label, tuple(steps), middle, tone=tone)
    low, high = (tuple(pick(values[step]) for step in steps) for pick in (min, max))
    return Line(f"{label}, n={len(recorded)}", tuple(steps), middle, low=low, high=high, tone=tone)
