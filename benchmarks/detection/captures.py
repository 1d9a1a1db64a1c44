"""What happened to the texts of a run in which nothing was injected.

The label is taken from what the role wrote, before any detector is asked: from the share of its
outputs per iteration that begin with the answer, without any work before it (`terse`). An
aggregator that selects is terse; one that has begun to write like its generators is not. The share
is the trainer's own count, from the texts of all of a role's outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Literal

from benchmarks.detection.recordings import Recording

Capture = Literal["lasting", "passing", "none"]

START = 3
"""Iterations whose mean is the start: the base model's own habit."""
END = 6
"""Last iterations, whose mean is the end."""
WIDTH = 3
"""A fall must show in the mean of so many iterations in a row: a single one has 32 outputs."""
FALLEN = 0.5
"""A share has fallen when it is at most this much of the start."""
LEAST_START = 0.5
"""A role that began less terse than this has no terse form to lose: ``none``."""


def capture(recording: Recording) -> Capture:
    """What happened to the aggregator in a recorded run."""
    return capture_of(recording.terse.get("aggregator", ()))


def capture_of(terse: Sequence[float]) -> Capture:
    """Whether a role lost its terse form.

    Args:
        terse: Share of its outputs that begin with the answer, per iteration.

    Returns:
        ``lasting`` if the mean of the last 6 iterations is at most half of the start; ``passing``
        if that of some 3 iterations in a row is, and the end is not; ``none`` otherwise.
    """
    if len(terse) < START + END:
        return "none"
    start = fmean(terse[:START])
    if start < LEAST_START:
        return "none"
    if fmean(terse[-END:]) <= FALLEN * start:
        return "lasting"
    return "none" if onset_of(terse) is None else "passing"


def onset_of(terse: Sequence[float]) -> int | None:
    """First low iteration, from 1, of the first 3 in a row whose mean is at most half the start."""
    limit = FALLEN * fmean(terse[:START])
    for first in range(START, len(terse) - WIDTH + 1):
        if fmean(terse[first : first + WIDTH]) <= limit:
            return next(i + 1 for i in range(first, first + WIDTH) if terse[i] <= limit)
    return None
