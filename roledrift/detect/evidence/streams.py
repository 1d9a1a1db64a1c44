"""Streams: one statistic of one role, watched for a lasting change in one direction."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from roledrift.detect.evidence.process import ChangeProcess
from roledrift.detect.evidence.scales import Scale
from roledrift.detect.evidence.start import Start, Yardstick
from roledrift.records import StepRecord

_LARGEST = 700.0
"""Logarithm of the largest ratio that a number holds."""

RECENT = 3
"""Records whose mean is the present value of a stream."""


Reader = Callable[[StepRecord, str], float | None]


@dataclass(frozen=True, slots=True)
class Stream:
    """What is watched.

    Attributes:
        name: Name of the statistic, in the records and for people.
        scale: Where its values are compared.
        way: 1 to watch for a rise, -1 for a fall.
        band: Change, on the scale, that healthy runs show too and that is nobody's business.
        spread: Standard deviation of one healthy record, on the scale: the median of the recorded
            healthy runs.
        floor: The smallest standard deviation that is believed.
        correlation: Lag-one correlation of healthy records.
        read: Where the value comes from; None reads the mean of the statistic ``name``.
        pool: Things that a value must be the mean of; records are pooled until there are so many.
        base: Whether its value before training is a yardstick of the start.
        moves: Whether a higher learning rate moves it.
    """

    name: str
    scale: Scale
    way: int
    band: float
    spread: float
    floor: float
    correlation: float = 0.2
    read: Reader | None = None
    pool: float = 0.0
    base: bool = False
    moves: bool = False


class StreamState:
    """One stream of one role in one run.

    Args:
        of: What is watched.
        role: Whose.
        window: Records of the start.
        close_after: Records in a row back within the band that end an excursion.
    """

    def __init__(self, of: Stream, role: str, *, window: int, close_after: int) -> None:
        self.of, self.role = of, role
        self.needed = math.inf
        """Log-evidence that completes it; set by the board, which counts the streams."""
        self.start = Start(window, spread=of.spread, floor=of.floor, correlation=of.correlation)
        self.process = ChangeProcess()
        self.value: float | None = None
        """The latest value; None before there was any."""
        self.step = -1
        """Step of the latest value."""
        self.judged = False
        """Whether the latest record brought a value that was judged."""
        self.yardstick: Yardstick | None = None
        """A start that is known from elsewhere; the run's own start is judged by it."""
        self._beyond = ChangeProcess()
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._close_after = max(close_after, 1)
        self._complete = False
        self._calm = 0
        self._n = self._total = 0.0

    @property
    def seen(self) -> bool:
        """True once there was any value."""
        return self.value is not None

    @property
    def known(self) -> bool:
        """True once there is a start to judge by."""
        return self.start.lacks == 0

    @property
    def complete(self) -> bool:
        """True while the evidence is complete and the stream has not come back."""
        return self._complete

    @property
    def leaning(self) -> bool:
        """True while half of the evidence is there."""
        return self._complete or self.evidence >= self.needed / 2

    @property
    def sick_start(self) -> bool:
        """True if the run already started where its yardstick says that no healthy run does."""
        return self.yardstick is not None and self._beyond.log >= self.needed

    @property
    def evidence(self) -> float:
        """Log-evidence for the excursion."""
        return max(self.process.log, self._beyond.log)

    @property
    def onset(self) -> int | None:
        """First step of the present excursion."""
        return self._beyond.onset if self.sick_start else self.process.onset

    @property
    def center(self) -> float:
        """Where the stream should be, on the scale."""
        if self.yardstick is not None and (self.sick_start or not self.known):
            return self.yardstick.center
        return self.start.center

    @property
    def typical(self) -> float:
        """The start, as a value of the statistic."""
        return self.of.scale.back(self.center) if self.known or self.yardstick else math.nan

    @property
    def change(self) -> float:
        """The mean of the last records minus the start, on the scale, in the watched direction."""
        if not self._recent or not (self.known or self.yardstick):
            return 0.0
        return self.of.way * (fmean(self._recent) - self.center)

    @property
    def ratio(self) -> float:
        """The same as a ratio of values; 1 is unchanged. For scales of ratios only."""
        return math.exp(min(self.of.way * self.change, _LARGEST))

    @property
    def now(self) -> float:
        """The mean of the last records, as a value of the statistic."""
        return self.of.scale.back(fmean(self._recent)) if self._recent else math.nan

    def measure_by(self, yardstick: Yardstick) -> None:
        """Judge the run's start by one that is known already; the first yardstick counts."""
        self.yardstick = self.yardstick or yardstick

    def see(self, record: StepRecord) -> None:
        """Take one record."""
        self.judged = False
        value = self._read(record)
        if value is None or not math.isfinite(value):
            return
        self.value, self.step = value, record.step
        x = self.of.scale.on(value)
        self._recent.append(x)
        start = self.start
        if self.yardstick is not None:
            self._hold_against(self.yardstick, record.step, x)
        if start.lacks:
            start.add(x)
            start.learn(x, quiet=True)
            return
        self.judged = True
        above = self.of.way * (x - start.center)
        long_run = start.spread * start.stretch
        self.process.see(record.step, (above - self.of.band - start.error) / long_run)
        quiet = self.process.quiet
        if quiet and not start.full:
            start.add(x)
        start.learn(x, quiet=quiet)
        self._settle(above)

    def _hold_against(self, yardstick: Yardstick, step: int, x: float) -> None:
        above = self.of.way * (x - yardstick.center)
        long_run = self.start.spread * self.start.stretch
        self._beyond.see(step, (above - self.of.band - yardstick.error) / long_run)
        self.judged = True
        self._complete = self._complete or self.sick_start

    def _settle(self, above: float) -> None:
        """Open the excursion once the evidence is complete; close it once the stream is back."""
        self._complete = self._complete or self.process.log >= self.needed
        if self.sick_start and self.yardstick is not None:
            above += self.of.way * (self.start.center - self.yardstick.center)
        self._calm = self._calm + 1 if above < max(self.of.band, self.start.error) else 0
        if self._complete and self._calm >= self._close_after:
            self._complete, self._calm = False, 0
            self.process.reset()
            self._beyond.reset()

    def _read(self, record: StepRecord) -> float | None:
        if self.of.read is not None:
            return self.of.read(record, self.role)
        if not self.of.pool:
            return record.mean(self.role, self.of.name)
        counted = record.counted(self.role, self.of.name)
        if counted is None or not math.isfinite(counted[1]):
            return None
        self._n += counted[0]
        self._total += counted[0] * counted[1]
        if self._n <= 0 or self._n < self.of.pool:
            return None
        mean, self._n, self._total = self._total / self._n, 0.0, 0.0
        return mean
