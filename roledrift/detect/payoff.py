"""What the training has bought so far: the reward against its start and against its best.

Sharpening, agreement and silence are what success looks like as well: entropy falls and siblings
agree in every run that learns. They are damage where nothing is gained by them, so the detectors of
such signs ask here first.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from statistics import fmean
from typing import Literal

from roledrift.config import BaselineConfig
from roledrift.detect.baseline import SHARE, Warmup, measured, middle
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE

Course = Literal["rose", "level", "fell", "unknown"]

RECENT = 8
"""Records whose mean is the present reward: healthy rewards wobble by the hardness of a batch."""

LOSS = 0.25
"""Share of the best reward whose loss is a fall."""

_GAIN = 0.05
_NOISE = 3.0
_JUMPS = 64


class Payoff:
    """The course of the workflow's accuracy, or where none is known of the reward.

    *rose*: the mean of the last :data:`RECENT` records is above the baseline by 0.05, by half
    of the baseline's robust standard deviation and by three times the noise of such a mean, and has
    not fallen. *fell*: it is below its own best
    by a quarter of it, and by three times that noise, which the differences between neighbouring
    records show. Injected bonuses do not count where an ``accuracy`` is known.

    Args:
        config: The baseline.
    """

    def __init__(self, config: BaselineConfig) -> None:
        self._warmup = Warmup(config, SHARE)
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._jumps: deque[float] = deque(maxlen=_JUMPS)
        self._sorted: list[float] = []
        self._now = 0.0
        self._best: float | None = None
        self._source = ""
        # Asked for several times per record, and what it takes is a median: told once.
        self._course: Course | None = None
        self._told = ""

    def see(self, record: StepRecord) -> None:
        """Take one record."""
        self._course, self._told = None, ""
        source, value = outcome(record)
        if value is None or (self._source and source != self._source):
            self._warmup.see(None)
            return
        self._source = source
        self._warmup.see(value)
        if self._recent:
            self._jump(abs(value - self._recent[-1]))
        self._recent.append(value)
        if len(self._recent) == RECENT:
            self._now = now = fmean(self._recent)
            self._best = now if self._best is None else max(self._best, now)

    def _jump(self, size: float) -> None:
        if math.isnan(size):
            return  # from infinity to infinity; it has no place among sorted ones
        if len(self._jumps) == _JUMPS:
            del self._sorted[bisect_left(self._sorted, self._jumps[0])]
        self._jumps.append(size)
        insort(self._sorted, size)

    @property
    def course(self) -> Course:
        """Where it has gone; ``unknown`` before the baseline and :data:`RECENT` records."""
        if self._course is None:
            self._course = self._judged()
        return self._course

    def _judged(self) -> Course:
        base, now = self._warmup.baseline, self._now
        if base is None or self._best is None:
            return "unknown"
        # Median |difference| of neighbours is 0.954 sd; a mean of n has sd / sqrt(n).
        noise = middle(self._sorted) / 0.954 / RECENT**0.5
        if self._best - now >= max(LOSS * abs(self._best), _NOISE * noise, _GAIN):
            return "fell"
        # Both sides of the difference are noisy: means of some eight records each.
        gain = max(_GAIN, base.sigma / 2, _NOISE * noise)
        return "rose" if now - base.center >= gain else "level"

    def __str__(self) -> str:
        base = self._warmup.baseline
        if base is None or self._best is None:
            return "reward unknown"
        if not self._told:
            self._told = f"{self._source} {base.typical:.3g} -> {self._now:.3g}"
            self._told += f", best {self._best:.3g}" if self.course == "fell" else ""
        return self._told


def outcome(record: StepRecord) -> tuple[str, float | None]:
    """What the workflow earned in a step, best source first, with the name of the source."""
    accuracy = measured(record.totals.get("accuracy"))
    if accuracy is not None:
        return "accuracy", accuracy
    for value in (record.mean(EVERYONE, "reward"), record.totals.get("reward")):
        known = measured(value)
        if known is not None:
            return "reward", known
    return "", None
