"""Streams: one statistic of one role, watched for a lasting change in one direction."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any

from roledrift.detect.evidence.process import ChangeProcess
from roledrift.detect.evidence.scales import Scale
from roledrift.detect.evidence.start import Start, Yardstick
from roledrift.judgement import Severity, State, Verdict
from roledrift.records import StepRecord

_LARGEST = 700.0
"""Logarithm of the largest ratio that a number holds."""

RECENT = 3
"""Records whose mean is the present value of a stream."""

MINOR = 0.1
"""Weight of a stream whose finding can wait: a tenth of the budget of those that cannot."""

Reader = Callable[[StepRecord, str], float | None]


@lru_cache(maxsize=256)
def _mean_of(name: str) -> Reader:
    return lambda record, role: record.mean(role, name)


@lru_cache(maxsize=64)
def against(needed: float) -> str:
    """What a verdict says about the evidence that it needed."""
    return f"against {needed:.2f} needed"


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
        weight: Share of the false-alert budget, relative to other streams.
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
    weight: float = 1.0


class StreamState:
    """One stream of one role in one run.

    Args:
        of: What is watched.
        role: Whose.
        window: Records of the start.
        close_after: Records in a row back within the band that end an excursion.

    Attributes:
        needed: Log-evidence that completes it; set by the board, which counts the streams.
        value: The latest value; None before there was any. ``step`` is when that was.
        judged: Whether the latest record brought a value that was judged.
        complete: True while the evidence is complete and the stream has not come back.
        yardstick: A start that is known from elsewhere; the run's own start is judged by it.
    """

    def __init__(self, of: Stream, role: str, *, window: int, close_after: int) -> None:
        self.of, self.role = of, role
        self.needed = math.inf
        self.start = Start(window, spread=of.spread, floor=of.floor, correlation=of.correlation)
        self.process, self._beyond = ChangeProcess(), ChangeProcess()
        self.value: float | None = None
        self.step = -1
        self.judged = self.complete = False
        self.yardstick: Yardstick | None = None
        self._read = of.read or (None if of.pool else _mean_of(of.name))
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._mean = math.nan
        self._close_after = max(close_after, 1)
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
    def leaning(self) -> bool:
        """True while half of the evidence is there."""
        return self.complete or max(self.process.log, self._beyond.log) >= self.needed / 2

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
        """Where the stream should be, on the scale; NaN while that is not known."""
        known = self.start.lacks == 0
        if self.yardstick is not None and (self.sick_start or not known):
            return self.yardstick.center
        return self.start.center if known else math.nan

    @property
    def typical(self) -> float:
        """The start, as a value of the statistic."""
        center = self.center
        return self.of.scale.back(center) if center == center else center

    @property
    def change(self) -> float:
        """The mean of the last records minus the start, on the scale, in the watched direction."""
        change = self.of.way * (self._mean - self.center)
        return change if change == change else 0.0

    @property
    def ratio(self) -> float:
        """The same as a ratio of values; 1 is unchanged. For scales of ratios only."""
        return math.exp(min(self.of.way * self.change, _LARGEST))

    @property
    def now(self) -> float:
        """The mean of the last records, as a value of the statistic."""
        return self.of.scale.back(self._mean) if self.seen else math.nan

    def lacking(self, need: str) -> str:
        """What is wanted before it is judged: more steps, or ``need`` if it was never measured."""
        return f"{max(self.start.lacks, 1)} more steps" if self.seen else need

    def verdict(
        self,
        detector: str,
        reason: str,
        finding: str = "",
        severity: Severity | None = None,
        *,
        watch: bool | None = None,
        **further: Any,
    ) -> Verdict:
        """A verdict that rests on this stream.

        Args:
            detector: Name of the detector.
            reason: One sentence with the numbers.
            finding: What was found; empty for nothing.
            severity: How bad that is.
            watch: Whether it is watched where nothing was found; None: if it is leaning.
            further: Attributes of the verdict that are not those of the stream.
        """
        watch = self.leaning if watch is None else watch
        state: State = "drift" if finding else "watch" if watch else "ok"
        further.setdefault("statistic", self.of.name)
        further.setdefault("evidence", self.evidence)
        if "value" not in further:
            further["value"] = self.now
        if "baseline" not in further:
            further["baseline"] = self.typical
        if state == "ok":
            further["onset"] = None
        elif "onset" not in further:
            further["onset"] = self.onset
        return Verdict(
            detector,
            self.role,
            state,
            finding,
            reason=reason,
            chance=against(self.needed),
            severity=severity if finding else None,
            **further,
        )

    def measure_by(self, yardstick: Yardstick) -> None:
        """Judge the run's start by one that is known already; the first yardstick counts."""
        self.yardstick = self.yardstick or yardstick

    def observe(self, record: StepRecord) -> None:
        """Take one record."""
        self.judged = False
        value = self._read(record, self.role) if self._read else self._pooled(record)
        if value is None or not isfinite(value):
            return
        step, start, recent, of = record.step, self.start, self._recent, self.of
        self.value, self.step = value, step
        x = of.scale.on(value)
        recent.append(x)
        self._mean = sum(recent) / len(recent)
        if self.yardstick is not None:
            self._beyond.observe(step, self._excess(x, self.yardstick))
            self.judged = True
            self.complete = self.complete or self.sick_start
        if start.lacks:
            start.add(x)
            start.learn(x, quiet=True)
            return
        self.judged = True
        process = self.process
        process.observe(step, self._excess(x, start))
        above = of.way * (x - start.center)
        quiet = process.quiet
        if quiet and not start.full:
            start.add(x)
        start.learn(x, quiet=quiet)
        self._settle(above)

    def _excess(self, x: float, usual: Start | Yardstick) -> float:
        """Long-run standard deviations above what a healthy stream may do."""
        of, start = self.of, self.start
        above = of.way * (x - usual.center) - of.band - usual.error
        return above / (start.spread * start.stretch)

    def _settle(self, above: float) -> None:
        """Open the excursion once the evidence is complete; close it once the stream is back."""
        self.complete = self.complete or self.process.log >= self.needed
        if self.yardstick is not None and self.sick_start:
            above += self.of.way * (self.start.center - self.yardstick.center)
        band, error = self.of.band, self.start.error
        self._calm = self._calm + 1 if above < band or above < error else 0
        if self.complete and self._calm >= self._close_after:
            self.complete, self._calm = False, 0
            self.process.reset()
            self._beyond.reset()

    def _pooled(self, record: StepRecord) -> float | None:
        counted = record.counted(self.role, self.of.name)
        if counted is None or not math.isfinite(counted[1]):
            return None
        self._n += counted[0]
        self._total += counted[0] * counted[1]
        if self._n <= 0 or self._n < self.of.pool:
            return None
        mean, self._n, self._total = self._total / self._n, 0.0, 0.0
        return mean
