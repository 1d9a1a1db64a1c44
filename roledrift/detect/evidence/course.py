"""What training has bought so far: the accuracy against its start and against its best.

Sharpening, agreement, longer answers and larger steps are what success looks like too. They are
damage where nothing is gained by them, so detectors ask here before they call a run failing.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import fmean
from typing import Literal

from roledrift.detect.evidence.noise import Noise
from roledrift.detect.evidence.scales import ABSURD
from roledrift.detect.evidence.trend import Thinned
from roledrift.judgement import Severity
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE

Direction = Literal["rose", "level", "fell", "unknown"]

RECENT = 6
"""Records whose mean is the present accuracy: batches differ in how hard they are."""

LOSS = 0.25
"""Share of the best accuracy whose loss is a fall."""

LATE = 0.4
"""Last part of a run that shows whether it still gains."""

LEAST_LATE = 30
"""Records that this part must have."""

_TENTH = 0.1
_NEVER = 0.75
_GAIN = 0.05
_NOISE = 3.0
_JUMPS = 48


class Course:
    """The course of the workflow's training accuracy, or where none is known of the reward.

    *rose*: the mean of the last :data:`RECENT` records exceeds that of the first ones by 0.05 and
    by three standard errors. *fell*: it is below the best such mean by a quarter of it, by 0.05 and
    by three standard errors. The noise is that of differences between neighbouring records.

    Attributes:
        source: ``accuracy`` or ``reward``; empty while neither was recorded.
        now: Mean of the last records; NaN before there are any.
        direction: Where it has gone; ``unknown`` before there are :data:`RECENT` records.
        improving: True while it is rising: the last records beat those before them.
        history: The whole course, thinned.
        losing: True if it has fallen: by the validations where there are at least two.
    """

    def __init__(self) -> None:
        self.source = ""
        self.now = math.nan
        self.direction: Direction = "unknown"
        self.improving = False
        self._history: deque[float] = deque(maxlen=2 * RECENT)
        self.history = Thinned()
        self._is_share = True
        self._noise = Noise(_JUMPS)
        self._step = 0
        self._first: float | None = None
        self._best = (0, -math.inf)
        self._judged = (-1, False, False)
        self._validations = 0
        self._peak = (0, -math.inf)
        self._peak_n = 0.0
        self._fallen = ""
        self._text = "no accuracy or reward known"
        """What people are told; empty until somebody asks for that of the present record."""

    def observe(self, record: StepRecord) -> None:
        """Take one record."""
        value = record.totals.get("val_accuracy")
        if value is not None and 0.0 <= value <= 1.0:
            self._validate(record.step, value, record.totals.get("val_n", 0.0))
        source, now = outcome(record)
        if now is None or (self.source and source != self.source):
            return
        self.source, self._step = source, record.step
        self._noise.observe(now)
        self.history.add(record.step, now)
        self._is_share = self._is_share and 0.0 <= now <= 1.0
        self._history.append(now)
        history = list(self._history)
        self.now = fmean(history[-RECENT:])
        if len(history) >= RECENT:
            self._judge(history)

    def _judge(self, history: list[float]) -> None:
        if self._first is None:
            self._first = self.now
        if self.now > self._best[1]:
            self._best = (self._step, self.now)
        best, error = self._best[1], self._noise.sd / math.sqrt(RECENT)
        self.direction = "level"
        if best - self.now >= max(LOSS * abs(best), _NOISE * error, _GAIN):
            self.direction = "fell"
        elif self.now - self._first >= max(_GAIN, _NOISE * error):
            self.direction = "rose"
        if len(history) == 2 * RECENT:
            before = fmean(history[:RECENT])
            self.improving = self.now - before >= max(_GAIN, error * math.sqrt(2))
        self._text = ""

    def _validate(self, step: int, now: float, n: float) -> None:
        (best_step, best), best_n = self._peak, self._peak_n
        if self._validations:
            error = (
                math.sqrt(max(best * (1 - best), 0.25 / best_n) / best_n) if best_n > 0 else 0.05
            )
            lost = best - now >= max(LOSS * best, _GAIN, 2.5 * error)
            self._fallen = _fall("validation accuracy", best, best_step, now, step) if lost else ""
        self._validations += 1
        if now > best:
            self._peak, self._peak_n = (step, now), n

    @property
    def settled(self) -> bool:
        """True if the last 40 % of the run, of 30 records at least, have gained next to nothing.

        That is: at most a tenth of all that was gained, with an upper bound; or, where nothing was
        ever gained, less over the whole run than three quarters of what records scatter.
        """
        return self._gains()[2]

    @property
    def gained(self) -> bool:
        """True if parts of the run differ by more than their noise."""
        return self._gains()[1]

    def _gains(self) -> tuple[int, bool, bool]:
        """For how many bins of the history, whether it has gained, and whether it has settled."""
        if self._judged[0] == self.history.bins:
            return self._judged
        late, every = self.history.gain(LATE), self.history.gain()
        low, high = self.history.range()
        gained = settled = False
        if late is not None and every is not None:
            gained = high - low > _NOISE * max(late.error, every.error)
            if late.records >= LEAST_LATE:
                bought, noise = late.most < _TENTH * (high - low), _NEVER * every.noise
                settled = bought if gained else every.most < noise
        self._judged = (self.history.bins, gained, settled)
        return self._judged

    @property
    def rising(self) -> bool:
        """True if the second half of the run has gained something, beyond its noise."""
        late = self.history.gain(0.5)
        return late is not None and late.least > 0

    @property
    def level(self) -> float | None:
        """What share is solved, where the accuracy is known or the reward lies between 0 and 1."""
        if math.isnan(self.now) or (self.source == "reward" and not self._is_share):
            return None
        return self.now

    @property
    def losing(self) -> bool:
        """See the class."""
        return bool(self._fallen) if self._validations >= 2 else self.direction == "fell"

    @property
    def severity(self) -> Severity:
        """How bad a finding is that is damage only where something was lost."""
        return "failing" if self.direction == "fell" else "suspicious"

    @property
    def damage(self) -> str:
        """What was lost, in words; empty if nothing was."""
        if self._fallen or self.direction != "fell":
            return self._fallen
        name = "training accuracy" if self.source == "accuracy" else "the training reward"
        return _fall(name, self._best[1], self._best[0], self.now, self._step)

    def __str__(self) -> str:
        if not self._text:
            name = "training accuracy" if self.source == "accuracy" else "reward"
            self._text = f"{name} {self._first:.3g} -> {self.now:.3g}"
            if self.direction == "fell":
                self._text += f", best {self._best[1]:.3g}"
        return self._text


def _fall(name: str, best: float, best_step: int, now: float, step: int) -> str:
    return f"{name} has fallen from {best:.2f} (step {best_step}) to {now:.2f} (step {step})"


def outcome(record: StepRecord) -> tuple[str, float | None]:
    """What the workflow earned in a step, best source first, with the name of the source."""
    accuracy = record.totals.get("accuracy")
    if accuracy is not None and abs(accuracy) < ABSURD:
        return "accuracy", accuracy
    for value in (record.mean(EVERYONE, "reward"), record.totals.get("reward")):
        if value is not None and abs(value) < ABSURD:
            return "reward", value
    return "", None
