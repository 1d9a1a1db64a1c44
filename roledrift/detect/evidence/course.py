"""What training has bought so far: the accuracy against its start and against its best.

Sharpening, agreement, longer answers and larger steps are what success looks like too. They are
damage where nothing is gained by them, so detectors ask here before they call a run failing.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import fmean, median
from typing import Any, Literal

from roledrift.detect.evidence.trend import Thinned
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

TENTH = 0.1
NEVER = 0.75
_GAIN = 0.05
_NOISE = 3.0
_JUMPS = 48
ABSURD = 1e100
"""From here on, as with NaN and infinity, a number is no measurement; squares of it overflow."""


class Course:
    """The course of the workflow's training accuracy, or where none is known of the reward.

    *rose*: the mean of the last :data:`RECENT` records exceeds that of the first ones by 0.05 and
    by three standard errors. *fell*: it is below the best such mean by a quarter of it, by 0.05 and
    by three standard errors. The noise is that of differences between neighbouring records.
    """

    def __init__(self) -> None:
        self._values: deque[tuple[int, float]] = deque(maxlen=RECENT)
        self._history: deque[float] = deque(maxlen=2 * RECENT)
        self._jumps: deque[float] = deque(maxlen=_JUMPS)
        self._first: float | None = None
        self._best: tuple[int, float] | None = None
        self._validations: list[tuple[int, float, float]] = []
        self._best_validation: tuple[int, float, float] | None = None
        """The first best one before the last."""
        self._is_share = True
        self._judged: dict[str, Any] = {}
        self.history = Thinned()
        """The whole course."""
        self.source = ""
        """``accuracy`` or ``reward``; empty while neither was recorded."""

    def see(self, record: StepRecord) -> None:
        """Take one record."""
        self._judged.clear()
        value = record.totals.get("val_accuracy")
        if value is not None and 0.0 <= value <= 1.0:
            n = record.totals.get("val_n", 0.0)
            n = n if n > 0 else 0.0
            if self._validations:
                last = self._validations[-1]
                if self._best_validation is None or last[1] > self._best_validation[1]:
                    self._best_validation = last
            self._validations.append((record.step, value, n))
        source, now = outcome(record)
        if now is None or (self.source and source != self.source):
            return
        self.source = source
        self.history.add(record.step, now)
        self._is_share = self._is_share and 0.0 <= now <= 1.0
        if self._values:
            self._jumps.append(abs(now - self._values[-1][1]))
        self._values.append((record.step, now))
        self._history.append(now)
        if len(self._values) == RECENT:
            mean = self.now
            self._first = mean if self._first is None else self._first
            if self._best is None or mean > self._best[1]:
                self._best = (record.step, mean)

    @property
    def now(self) -> float:
        """Mean of the last records; NaN before there are any."""
        if "now" not in self._judged:
            values = [value for _, value in self._values]
            self._judged["now"] = fmean(values) if values else math.nan
        return float(self._judged["now"])

    @property
    def direction(self) -> Direction:
        """Where it has gone; ``unknown`` before there are :data:`RECENT` records."""
        if "direction" not in self._judged:
            self._judged["direction"] = self._direction()
        found: Direction = self._judged["direction"]
        return found

    def _direction(self) -> Direction:
        if self._first is None or self._best is None:
            return "unknown"
        # The median |difference| of neighbours is 0.954 sd; a mean of n has sd / sqrt(n).
        error = median(self._jumps) / 0.954 / math.sqrt(RECENT) if self._jumps else 0.0
        if self._best[1] - self.now >= max(LOSS * abs(self._best[1]), _NOISE * error, _GAIN):
            return "fell"
        return "rose" if self.now - self._first >= max(_GAIN, _NOISE * error) else "level"

    @property
    def improving(self) -> bool:
        """True while accuracy is rising: the last records beat those before them."""
        if len(self._history) < 2 * RECENT or not self._jumps:
            return False
        before = fmean(list(self._history)[: len(self._history) - RECENT])
        error = median(self._jumps) / 0.954 * math.sqrt(2 / RECENT)
        return self.now - before >= max(_GAIN, error)

    @property
    def settled(self) -> bool:
        """True if the last 40 % of the run, of 30 records at least, have gained next to nothing.

        That is: at most a tenth of all that was gained, with an upper bound; or, where nothing was
        ever gained, less over the whole run than three quarters of what records scatter.
        """
        late, every = self.history.gain(LATE), self.history.gain()
        if late is None or every is None or late.records < LEAST_LATE:
            return False
        low, high = self.history.range()
        if high - low > 2 * max(late.error, every.error):
            return late.most < TENTH * (high - low)
        return every.most < NEVER * every.noise

    @property
    def rising(self) -> bool:
        """True if the second half of the run has gained something, beyond its noise."""
        late = self.history.gain(0.5)
        return late is not None and late.least > 0

    @property
    def level(self) -> float | None:
        """What share is solved, where the accuracy is known or the reward lies between 0 and 1."""
        if not self._values or (self.source == "reward" and not self._is_share):
            return None
        return self.now

    @property
    def losing(self) -> bool:
        """True if accuracy has fallen: that of the validations where there are any."""
        if "losing" not in self._judged:
            validated = len(self._validations) >= 2
            fell = bool(self._fallen_validation()) if validated else self.direction == "fell"
            self._judged["losing"] = fell
        return bool(self._judged["losing"])

    @property
    def damage(self) -> str:
        """What was lost, in words; empty if nothing was."""
        validation = self._fallen_validation()
        if validation:
            return validation
        if self.direction != "fell" or self._best is None:
            return ""
        step = self._values[-1][0]
        name = "training accuracy" if self.source == "accuracy" else "the training reward"
        return (
            f"{name} has fallen from {self._best[1]:.2f} (step {self._best[0]}) to "
            f"{self.now:.2f} (step {step})"
        )

    def _fallen_validation(self) -> str:
        if len(self._validations) < 2:
            return ""
        assert self._best_validation is not None
        best_step, best, n = self._best_validation
        step, now, _ = self._validations[-1]
        error = math.sqrt(max(best * (1 - best), 0.25 / n) / n) if n else 0.05
        if best - now < max(LOSS * best, _GAIN, 2.5 * error):
            return ""
        return (
            f"validation accuracy has fallen from {best:.2f} (step {best_step}) to {now:.2f} "
            f"(step {step})"
        )

    def __str__(self) -> str:
        if "told" not in self._judged:
            self._judged["told"] = self._told()
        return str(self._judged["told"])

    def _told(self) -> str:
        if self._first is None:
            return "no accuracy or reward known"
        name = "training accuracy" if self.source == "accuracy" else "reward"
        told = f"{name} {self._first:.3g} -> {self.now:.3g}"
        if self.direction == "fell" and self._best is not None:
            told += f", best {self._best[1]:.3g}"
        return told


def outcome(record: StepRecord) -> tuple[str, float | None]:
    """What the workflow earned in a step, best source first, with the name of the source."""
    accuracy = record.totals.get("accuracy")
    if accuracy is not None and abs(accuracy) < ABSURD:
        return "accuracy", accuracy
    for value in (record.mean(EVERYONE, "reward"), record.totals.get("reward")):
        if value is not None and abs(value) < ABSURD:
            return "reward", value
    return "", None
