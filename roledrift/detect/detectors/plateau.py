"""``plateau``: the run has stopped learning, or never began to.

A plateau is no failure: it says that further steps have bought nothing. It is judged by a straight
line through the last 40 % of the run, whose upper bound must lie below a tenth of all that was
gained. "The last value is not the best" would be true half of the time of a noisy curve.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.course import LATE, LEAST_LATE
from roledrift.detect.evidence.trend import Array
from roledrift.detect.units import not_logged, run_unit, too_short
from roledrift.judgement import Verdict
from roledrift.records import StepRecord

NAME = "plateau"
NEVER = "no_learning"
_RECORDS = 60
"""Records before which nothing is said: learning may yet begin, or go on after a pause."""

_NEVER_RECORDS = 100
_PATIENCE = 10
_SOLVED = 0.9


class _Plateau:
    def __init__(self, context: Context) -> None:
        self._workflow = context.workflow
        self._course = context.course
        self._unit = run_unit(context.workflow)
        self._absent = not_logged(NAME, self._workflow, "accuracy or reward")
        self._short = too_short(NAME, self._workflow, _RECORDS)
        self._held = 0
        self._since = (-1, 0.0)

    def update(self, record: StepRecord) -> Sequence[Verdict]:  # noqa: ARG002
        course = self._course
        if not course.source:
            return [self._absent]
        late, every = course.history.gain(LATE), course.history.gain()
        if late is None or every is None or course.history.records < _RECORDS:
            return [self._short]
        low, high = course.history.range()
        gained = course.gained
        settled = course.settled and late.records >= LEAST_LATE
        if not gained and course.history.records < _NEVER_RECORDS:
            settled = False
        if course.level is not None and course.now >= _SOLVED:
            settled = False  # Nothing is left to gain.
        self._held = self._held + 1 if settled else 0
        drift = self._held >= _PATIENCE
        name = "accuracy" if course.source == "accuracy" else "reward"
        text = (
            f"over the last {late.records} records the {name} has changed by {late.change:+.3g} "
            f"(at most {late.most:+.3g} with 99.5 % confidence), over the whole run by "
            f"{high - low:.3g}"
        )
        onset = every.first
        if settled and gained:
            if self._since[0] != course.history.bins:
                first = _since(course.history.arrays(), late.mean, late.noise)
                self._since = (course.history.bins, first)
            onset = self._since[1]
        return [
            Verdict(
                detector=NAME,
                role=self._unit,
                state="drift" if drift else "watch" if settled else "ok",
                finding=(NAME if gained else NEVER) if drift else "",
                statistic=name,
                value=late.mean,
                baseline=high,
                onset=int(onset) if settled else None,
                reason=text,
                severity="suspicious" if drift else None,
            )
        ]


def _since(arrays: tuple[Array, Array], mean: float, noise: float) -> float:
    """First step at which the series had come to where it is now."""
    steps, values = arrays
    reached = np.flatnonzero(values >= mean - noise)
    return float(steps[reached[0]]) if reached.size else float(steps[0])


CARD = Card(
    name=NAME,
    about="Watches whether the accuracy, or where there is none the reward, still rises.",
    findings=(
        Finding(
            NAME,
            "Nothing has been gained since step {onset}",
            "The last 40 % of the run have gained less than a tenth of what was gained before.",
            "outcome",
            "suspicious",
            (
                "go back to the best checkpoint; later ones are not better",
                "use harder or other problems, or stop the run",
                "record a validation: a training reward also stands still when problems get harder",
            ),
            ("a line through the end of the run: docs/detectors/plateau.md",),
        ),
        Finding(
            NEVER,
            "The run has learned nothing since step {onset}",
            "Neither accuracy nor reward has risen over the whole run.",
            "outcome",
            "suspicious",
            (
                "check that the steps change the policy: learning rate, adapter, frozen parts",
                "check that the rewards of a group differ: without that there is nothing to learn",
                "use easier problems, or more responses per problem",
            ),
            ("Shao et al. (2024), DeepSeekMath, arXiv 2402.03300: what GRPO's advantages are",),
        ),
    ),
    make=_Plateau,
    reads=("accuracy", "reward"),
    needs=("an accuracy or a reward",),
    order=8,
)
