"""Whether a run that has not ended has gone silent, from the times of its records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median

from roledrift.records import StepRecord

SILENT = 3.0
"""A run is silent when nothing came for so many median steps."""

LEAST = 5.0
"""Seconds that are never silence."""

_PAUSES = 1.5
_RECENT = 50


def silent_for(
    records: Sequence[StepRecord], *, state: str, now: float, changed: float = 0.0
) -> float | None:
    """Seconds for which an open run has been silent; None if it is not, or nobody can tell.

    A run may pause to evaluate or to save: what it has paused before, and half of it more, is no
    silence either.

    Args:
        records: In the order of steps.
        state: As :attr:`roledrift.store.reader.StoredRun.state`; only ``open`` runs can be silent.
        now: Seconds since 1970.
        changed: When its files last changed, seconds since 1970, if that is later.
    """
    if state != "open" or not records:
        return None
    last = _time(records[-1])
    if last is None and not changed:
        return None
    quiet = now - max(last or 0.0, changed)
    usual, longest = _steps(records)
    if last is not None and not changed and not usual:
        return None  # a single record: nobody knows how long a step takes
    return quiet if quiet > max(SILENT * usual, _PAUSES * longest, LEAST) else None


def _steps(records: Sequence[StepRecord]) -> tuple[float, float]:
    """Median and longest seconds between two records of one writer; zeros if times say nothing."""
    timed = [(record.writer, _time(record)) for record in records[-_RECENT:]]
    gaps = [
        b - a
        for (first, a), (second, b) in pairwise(timed)
        if first == second and a is not None and b is not None and b >= a
    ]
    return (median(gaps), max(gaps)) if gaps else (0.0, 0.0)


def _time(record: StepRecord) -> float | None:
    try:
        return datetime.fromisoformat(record.time).timestamp()
    except ValueError:
        return None
