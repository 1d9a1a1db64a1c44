"""``entropy_floor``: exploration runs out before the run does.

Entropy falls in every run that learns, so how far it has fallen says little. What counts is when it
arrives at a tenth of its start, projected from its recent half (entropy decays by a factor per
step, so the line is through its logarithm), and whether anything is still gained meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import numpy as np

from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.trend import Thinned
from roledrift.detect.remedies import KL_ANCHOR, LOWER_RATE
from roledrift.detect.sources import CUI, DAPO
from roledrift.detect.units import known, not_logged, too_short, units
from roledrift.judgement import Severity, State, Verdict
from roledrift.records import StepRecord

NAME = "entropy_floor"
FLOOR = 0.1
"""Share of the start at which next to no exploration is left."""

_RECORDS = 40
_START = 8
_SOON = 0.25
"""Arrival within this share of the run so far is soon."""

_SURE = -3.0
"""Standard errors by which the slope must be negative."""

_SOLVED = 0.9
_PATIENCE = 5


class _Entropy:
    """The entropy of one unit."""

    def __init__(self) -> None:
        self.history = Thinned()
        self.start: list[float] = []
        self.held = 0
        self.onset: int | None = None
        self.first = 0
        self._arrival = (0, (1.0, math.inf))

    def add(self, step: int, value: float) -> None:
        if not self.start:
            self.first = step
        if len(self.start) < _START:
            self.start.append(value)
        self.history.add(step, math.log(max(value, 1e-9)))

    def arrival(self) -> tuple[float, float]:
        """The share of the start that is left, and the steps until the floor; infinite if never."""
        if self._arrival[0] != self.history.bins:
            self._arrival = (self.history.bins, self._arrives())
        return self._arrival[1]

    def _arrives(self) -> tuple[float, float]:
        gain = self.history.gain(0.5)
        start = math.log(max(median(self.start), 1e-9))
        if gain is None:
            return 1.0, math.inf
        late = self.history.arrays(0.1)[1]
        now = float(np.add.reduce(late)) / late.size
        left = now - start - math.log(FLOOR)
        if left <= 0:
            return math.exp(now - start), 0.0
        slope = gain.change / (gain.last - gain.first)
        if gain.error <= 0 or gain.change / gain.error > _SURE:
            return math.exp(now - start), math.inf
        return math.exp(now - start), left / -slope


class _EntropyFloor:
    def __init__(self, context: Context) -> None:
        self._workflow, self._course = context.workflow, context.course
        self._seen: dict[str, _Entropy] = {}
        self._units = units(context.workflow)
        self._absent = not_logged(NAME, self._workflow, "entropy")
        self._short = too_short(NAME, self._workflow, _RECORDS)

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        verdicts = []
        for unit in self._units:
            value = known(record, unit, "entropy")
            if value is None or value < 0:
                continue
            state = self._seen.setdefault(unit, _Entropy())
            state.add(record.step, value)
            if state.history.records >= _RECORDS:
                verdicts.append(self._judge(unit, record.step, state))
        if not self._seen:
            return [self._absent]
        enough = any(state.history.records >= _RECORDS for state in self._seen.values())
        return verdicts if enough else [self._short]  # a record may lack what others have

    def _judge(self, unit: str, step: int, state: _Entropy) -> Verdict:
        course = self._course
        left, steps = state.arrival()
        soon = steps <= _SOON * max(step - state.first, 1)
        solved = course.source == "accuracy" and course.now >= _SOLVED
        bought = course.rising or not course.source or solved
        state.held = state.held + 1 if soon and not bought else 0
        if state.held == 1:
            state.onset = step
        drift = state.held >= _PATIENCE
        word: State = "drift" if drift else "watch" if soon else "ok"
        reason = f"its entropy is {left:.0%} of that at the start"
        if 0 < steps < math.inf:
            reason += f" and reaches {FLOOR:.0%} at about step {step + steps:.0f}"
        elif steps == 0:
            reason += f", below {FLOOR:.0%}"
        severity: Severity = "failing" if course.losing else "suspicious"
        return Verdict(
            detector=NAME,
            role=unit,
            state=word,
            finding=NAME if drift else "",
            statistic="entropy",
            value=left,
            threshold=FLOOR,
            onset=state.onset if drift else None,
            reason=f"{reason}; {course}",
            severity=severity if drift else None,
        )


CARD = Card(
    name=NAME,
    about=(
        "Projects the step at which each role's entropy reaches a tenth of its start, and says so "
        "if that is soon and nothing is gained meanwhile."
    ),
    findings=(
        Finding(
            NAME,
            "{who} has been running out of exploration since step {onset}",
            "The entropy is at a tenth of its start, or will soon be there, and nothing is gained "
            "meanwhile.",
            "outcome",
            "suspicious",
            (
                "raise the upper clip only (clip-higher), or add an entropy bonus for {role}",
                "raise the sampling temperature of {role}",
                LOWER_RATE,
                KL_ANCHOR,
            ),
            (
                CUI,
                f"{DAPO}: clip-higher",
            ),
        ),
    ),
    make=_EntropyFloor,
    reads=("entropy", "accuracy", "reward"),
    needs=("entropy",),
    order=6,
)
