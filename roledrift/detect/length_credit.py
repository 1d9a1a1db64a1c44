"""Whether a role's advantage pays for length."""

from __future__ import annotations

import math
from collections import deque
from itertools import islice

from roledrift.records import Stat, StepRecord

_RECORDS = 8
_LEAST_GROUPS = 6


class LengthCredit:
    """Correlation of advantage and length within a role's advantage groups, over some records."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, Stat]] = deque(maxlen=8 * _RECORDS)

    def observe(self, record: StepRecord, role: str) -> None:
        """Take one record; one without advantage groups is passed over."""
        credit = record.stat(role, "length_credit")
        # Correlations and their spread are at most 1; anything else is no measurement.
        if credit is not None and credit.sd is not None and abs(credit.mean) <= 1 >= credit.sd:
            self._seen.append((record.step, credit))

    def lately(self) -> tuple[float, float] | None:
        """The correlation over the last records and its lower 95 % bound; None with few groups."""
        return _pooled([stat for _, stat in islice(reversed(self._seen), _RECORDS)])

    def since(self, step: int) -> tuple[float, float] | None:
        """The same over the first records from ``step`` on, as far as there are any."""
        return _pooled([stat for at, stat in self._seen if at >= step][: 2 * _RECORDS])


def _pooled(stats: list[Stat]) -> tuple[float, float] | None:
    n = math.fsum(stat.n for stat in stats)
    if n < _LEAST_GROUPS:
        return None
    mean = math.fsum(stat.n * stat.mean for stat in stats) / n
    square = math.fsum(stat.n * ((stat.sd or 0.0) ** 2 + (stat.mean - mean) ** 2) for stat in stats)
    return mean, mean - 1.645 * math.sqrt(square) / n
