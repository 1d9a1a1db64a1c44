"""Whether a role's advantage paid for length when its texts began to change."""

from __future__ import annotations

import math
from collections import deque

from roledrift.records import Stat, StepRecord

_PAID_WITHIN = 8


class Credit:
    """Keeps a role's ``length_credit`` of the last records."""

    def __init__(self) -> None:
        self._near: deque[tuple[int, Stat]] = deque(maxlen=8 * _PAID_WITHIN)

    def see(self, record: StepRecord, role: str) -> None:
        """Take one record; one without advantage groups is passed over."""
        credit = record.stat(role, "length_credit")
        if credit is not None and credit.sd is not None and math.isfinite(credit.mean):
            self._near.append((record.step, credit))

    def paid(self, onset: int) -> tuple[float, float] | None:
        """Correlation of advantage and length about ``onset``, and its lower 95 % bound.

        What pays for a change is seen while texts of both kinds are there: long before, and once
        all texts are long, the two have nothing to do with each other. Pooled over the advantage
        groups of the steps around the onset; the standard error is that of the groups' mean. None
        if there are fewer than ten groups.
        """
        near = [one for step, one in self._near if abs(step - onset) <= _PAID_WITHIN]
        n = math.fsum(one.n for one in near)
        if n < 10:
            return None
        mean = math.fsum(one.n * one.mean for one in near) / n
        square = math.fsum(one.n * ((one.sd or 0.0) ** 2 + (one.mean - mean) ** 2) for one in near)
        return mean, mean - 1.645 * math.sqrt(square) / n
