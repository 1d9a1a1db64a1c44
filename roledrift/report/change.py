"""How a curve changed since a step: the only definition of "before" and "after" on a page.

A mean over the whole time since an onset hides a collapse: a reward that rises to 0.94 and then
falls to 0.05 has a mean in between. So the start is a mean, over the steps before; what came of it
is the last value, and the value that was farthest from the start in whichever direction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from roledrift.report.numbers import average


@dataclass(frozen=True, slots=True)
class Change:
    """A curve before and after a step.

    Attributes:
        start: Mean of the finite values before; None without one.
        last: The last finite value, reached at ``last_step``.
        farthest: The finite value farthest from ``start``, up or down, the first of equals; reached
            at ``farthest_step``.
    """

    start: float | None
    last: float
    last_step: int
    farthest: float
    farthest_step: int

    @property
    def level(self) -> bool:
        """True if the curve ended within a tenth of where it began."""
        if self.start is None:
            return False
        return abs(self.last - self.start) <= 0.1 * abs(self.start)

    @property
    def ratio(self) -> float | None:
        """Last value over the start; None unless the start is above 0 and the last at least 0."""
        if self.start is None or self.start <= 1e-12 or self.last < 0:
            return None
        return self.last / self.start


def change_of(
    curve: Mapping[int, float], before: tuple[int, int], since: tuple[int, int]
) -> Change | None:
    """Compare a window of steps with an earlier one.

    Args:
        curve: Step to value.
        before: First and last step of the start, both included.
        since: First and last step of what followed, both included.

    Returns:
        None without a finite value in ``since``.
    """
    start = average(list(within(curve, before).values()))
    later = within(curve, since)
    if not later:
        return None
    last = max(later)
    origin = later[min(later)] if start is None else start
    far = max(sorted(later), key=lambda step: abs(later[step] - origin))
    return Change(start, later[last], last, later[far], far)


def within(curve: Mapping[int, float], window: tuple[int, int]) -> dict[int, float]:
    """The finite values of a curve in a window of steps, both ends included."""
    first, last = window
    return {
        step: value
        for step, value in curve.items()
        if first <= step <= last and math.isfinite(value)
    }
