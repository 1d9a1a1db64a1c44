r"""``reference_kl``: how far the policy has gone from its reference, and what that has bought.

The divergence starts at 0 and grows in every run that learns, so no level of it means anything and
neither does a start. What means something is its course. Of a policy that walks at random it grows
like the steps made, of one that goes straight on at constant speed like their square (to second
order :math:`KL \approx \frac12 \delta^T F \delta`); counted in sums of learning rates, a warm-up
changes nothing of that. Growth by a higher power is acceleration. Growth that goes on after the
reward has stopped to rise is drift that buys nothing (Gao et al.: reward goes with
:math:`\sqrt{KL}`, up to a point). No growth at all in a run that learns nothing means that the
penalty, or a frozen policy, holds it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.course import LATE
from roledrift.detect.evidence.scales import SHARES
from roledrift.detect.evidence.streams import MINOR, Stream
from roledrift.detect.evidence.trend import SURE, Thinned
from roledrift.detect.remedies import KL_ANCHOR, LOWER_RATE
from roledrift.detect.sources import GAO
from roledrift.detect.units import known, not_logged, reader, too_short, units
from roledrift.judgement import Severity, Verdict
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE

NAME = "reference_kl"
RUNAWAY, HELD, ONE_PLACE = "kl_runaway", "kl_strangled", "kl_concentrated"
_RECORDS = 60
_POWER = 3.0
_ACCELERATED = 3.0
"""Growth over the last part that acceleration must have brought."""

_WASTED = 2.0
"""Growth over the last part that has bought nothing."""

_STILL = 1.5
_STILL_RECORDS = 100
_ONE_PLACE = 0.4
_PATIENCE = 8
_LEAST = 1e-8

TOP = Stream(
    "reference.top_share",
    SHARES,
    1,
    0.1,
    0.05,
    0.03,
    0.2,
    reader("reference.top_share"),
    weight=MINOR,
)


class _Divergence:
    """Divergence of one unit, over the learning rates that were spent."""

    def __init__(self) -> None:
        self.logs, self.clock = Thinned(), Thinned()
        self.spent = 0.0
        self.held = 0
        self.finding = ""
        self.onset: int | None = None
        self._growth = (0, (1.0, 0.0, 0.0))
        self._factor = (-1, 1.0)

    def add(self, step: int, value: float, rate: float) -> None:
        self.spent += rate
        self.logs.add(step, math.log(max(value, _LEAST)))
        self.clock.add(step, math.log(max(self.spent, 1e-300)))

    def growth(self) -> tuple[float, float, float]:
        """Factor over the last part, the power of its growth, and a lower bound of the power."""
        if self._growth[0] != self.logs.bins:
            self._growth = (self.logs.bins, self._grown())
        return self._growth[1]

    def _grown(self) -> tuple[float, float, float]:
        gain = self.logs.gain(LATE)
        logs, clock = self.logs.arrays(LATE)[1], self.clock.arrays(LATE)[1]
        spread = float(clock.max() - clock.min()) if clock.size else 0.0
        if gain is None or spread <= 1e-6:
            return 1.0, 0.0, 0.0
        x = clock - clock.mean()
        power = float(x @ logs) / float(x @ x)
        return math.exp(min(gain.change, 50.0)), power, power - SURE * gain.error / spread

    def since_the_start(self) -> float:
        """Factor from the first to the last third."""
        if self._factor[0] != self.logs.bins:
            logs = self.logs.arrays()[1]
            third = max(logs.size // 3, 1)
            change = float(np.mean(logs[-third:]) - np.mean(logs[:third]))
            self._factor = (self.logs.bins, math.exp(min(change, 50.0)))
        return self._factor[1]


class _ReferenceKL:
    def __init__(self, context: Context) -> None:
        self._workflow, self._course = context.workflow, context.course
        self._rates = context.board.rates
        self._units = units(context.workflow)
        self._seen: dict[str, _Divergence] = {}
        self._top = {unit: context.board.watch(unit, TOP) for unit in self._units}
        self._absent = not_logged(NAME, self._workflow, "divergence from a reference policy")
        self._short = too_short(NAME, self._workflow, _RECORDS)

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        verdicts = []
        for unit in self._units:
            value = known(record, unit, "reference.k3")
            if value is None or (unit not in self._seen and value <= 0):
                continue  # Without a penalty trainers log 0, or nothing.
            state = self._seen.setdefault(unit, _Divergence())
            state.add(record.step, value, self._rate(unit))
            if state.logs.records >= _RECORDS:
                verdicts.append(self._judge(unit, record.step, state))
        if not self._seen:
            return [self._absent]
        enough = any(state.logs.records >= _RECORDS for state in self._seen.values())
        return verdicts if enough else [self._short]  # a record may lack what others have

    def _rate(self, unit: str) -> float:
        role = self._workflow.role_names[0] if unit == EVERYONE else unit
        return self._rates.now(role)

    def _judge(self, unit: str, step: int, state: _Divergence) -> Verdict:
        growth, power, least = state.growth()
        finding, reason = self._finding(state, growth, power, least)
        top = self._top[unit]
        if not finding and top.complete and top.now >= _ONE_PLACE:
            finding = ONE_PLACE
            reason += f"; {top.now:.0%} of it lies at one place of the responses"
        state.held = state.held + 1 if finding and finding == state.finding else int(bool(finding))
        if finding != state.finding:
            state.finding = finding
            first = state.logs.gain(LATE)
            state.onset = step if first is None else int(first.first)
            if finding == ONE_PLACE:
                state.onset = top.onset
        drift = state.held >= _PATIENCE
        severity: Severity = "failing" if self._course.losing else "suspicious"
        return Verdict(
            detector=NAME,
            role=unit,
            state="drift" if drift else "watch" if finding else "ok",
            finding=finding if drift else "",
            statistic="reference.k3",
            value=growth,
            baseline=1.0,
            onset=state.onset if finding else None,
            reason=f"{reason}; {self._course}",
            severity=severity if drift else None,
        )

    def _finding(
        self, state: _Divergence, growth: float, power: float, least: float
    ) -> tuple[str, str]:
        reason = (
            f"over the last {LATE:.0%} of the run its divergence from the reference has grown by a "
            f"factor of {growth:.3g}, with the power {power:.2g} of the steps made"
        )
        if growth >= _ACCELERATED and least > _POWER:
            return RUNAWAY, f"{reason} (2 is constant speed)"
        course = self._course
        if growth >= _WASTED and course.settled:
            return RUNAWAY, f"{reason}, and nothing has been gained by it"
        enough = state.logs.records >= _STILL_RECORDS
        if enough and not course.gained and course.settled and state.since_the_start() < _STILL:
            factor = state.since_the_start()
            return HELD, f"its divergence from the reference has grown by a factor of {factor:.2g}"
        return "", reason


_K3 = "Schulman (2020), joschu.net/blog/kl-approx.html: the k3 estimator that trainers log"

CARD = Card(
    name=NAME,
    about=(
        "Watches how each policy's divergence from its reference grows: faster than at constant "
        "speed, without buying anything, or not at all."
    ),
    findings=(
        Finding(
            RUNAWAY,
            "{who} has been running away from its reference since step {onset}",
            "The divergence from the reference policy grows faster than at constant speed, or goes "
            "on growing although nothing is gained.",
            "movement",
            "suspicious",
            (LOWER_RATE, KL_ANCHOR, "go back to the checkpoint at which the reward was best"),
            (GAO, _K3),
        ),
        Finding(
            HELD,
            "{who} has been held at its reference since step {onset}",
            "The divergence from the reference policy does not grow, and nothing is learned.",
            "movement",
            "suspicious",
            (
                "lower the weight of the KL term (TRL: beta; verl: kl_loss_coef)",
                "check that the parameters that are trained are those that are sampled from",
            ),
            (_K3,),
        ),
        Finding(
            ONE_PLACE,
            "{who} has left its reference at one place of its responses since step {onset}",
            "Most of the divergence from the reference lies at one place of the responses.",
            "movement",
            "suspicious",
            ("read the tokens at that place: a template, a prefix or a stop token was learned",),
            (_K3,),
        ),
    ),
    make=_ReferenceKL,
    reads=("reference.k3", "reference.top_share", "lr"),
    needs=("the divergence from a reference policy (TRL: beta > 0)",),
)
