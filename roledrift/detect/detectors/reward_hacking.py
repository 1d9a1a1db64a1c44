"""``reward_hacking``: what is paid for is not what is wanted.

*Paid for length.* A role's mean reward rises above that of the other roles, and within advantage
groups its longer responses have the higher advantages. Either alone is ordinary: roles may be
graded on their own, and longer responses may be better. Both together are also a finding from the
first step on, because they need no baseline.

*A reward that does not follow the accuracy.* The slope of the step's mean reward on its accuracy,
each in units of the standard deviation within the step, is 1 if the reward is the accuracy,
whatever its unit, and near 0 if it is noise.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from statistics import fmean

from roledrift.detect.abstaining import no_verdict, waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import ABSURD, LINEAR
from roledrift.detect.evidence.streams import Stream, StreamState
from roledrift.detect.length_credit import LengthCredit
from roledrift.detect.remedies import CAP_LENGTH, KL_ANCHOR
from roledrift.detect.sources import BENCHMARK, GAO, SINGHAL, SKALSE, SPURIOUS
from roledrift.judgement import Verdict
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE

NAME = "reward_hacking"
DETACHED = "reward_detached"

_LEAST_BIAS = 0.03
"""Standard deviations of the reward by which a role is paid more than the others, at least."""

_CLEAR = 0.1
"""Standard deviations that need no start to be compared with."""

_WINDOW = 16
_ENOUGH = 10
_SLOPE = 0.6
_SURE = 2.6
"""Standard errors: one-sided 0.5 %, because the slope is looked at in every record."""


def _bias(record: StepRecord, role: str) -> float | None:
    """The role's mean reward minus that of all, in standard deviations of all rewards."""
    bias, stat = record.mean(role, "reward_bias"), record.stat(EVERYONE, "reward")
    if bias is None or not math.isfinite(bias):
        return None
    if stat is None or stat.sd is None or not math.isfinite(stat.sd):
        return bias
    return bias / stat.sd if stat.sd > 1e-9 else 0.0


BIAS = Stream("reward_bias", LINEAR, 1, 0.01, 0.03, 0.01, 0.2, _bias)


class _RewardHacking:
    def __init__(self, context: Context) -> None:
        roles = context.workflow.role_names
        self._course = context.course
        several = roles if len(roles) > 1 else ()
        self._bias = {role: context.board.watch(role, BIAS) for role in several}
        self._credit = {role: LengthCredit() for role in several}
        self._open: dict[str, int] = {}
        self._rewards = _Slope()
        self._first: int | None = None

    def update(self, record: StepRecord) -> Iterator[Verdict | None]:
        self._first = record.step if self._first is None else self._first
        yield self._rewards.verdict(record) or self._without_slope(record)
        for role, state in self._bias.items():
            self._credit[role].observe(record, role)
            if state.seen and state.step == record.step:
                yield self._judge(role, record.step, state)
            elif not state.seen:
                yield waiting(NAME, role, "rewards of the roles")

    def _without_slope(self, record: StepRecord) -> Verdict | None:
        """Of a single role nothing else is judged, so it is said why there is no verdict."""
        if self._bias or self._rewards.judged:
            return None
        if record.totals.get("accuracy") is None:
            why = "does not apply: no accuracy beside the reward was recorded"
            return no_verdict(NAME, EVERYONE, why)
        return waiting(NAME, EVERYONE, "more steps in which accuracy and reward vary")

    def _judge(self, role: str, step: int, state: StreamState) -> Verdict:
        since = self._open.get(role, state.onset)
        lately = self._credit[role].lately()
        paid = (self._credit[role].since(since) if since is not None else None) or lately
        high = state.now >= _LEAST_BIAS
        from_start = high and lately is not None and lately[1] >= 0.1 and state.typical >= _CLEAR
        if from_start or (state.complete and high and paid is not None and paid[1] > 0.0):
            first = self._first if from_start and self._first is not None else step
            self._open.setdefault(role, first if state.onset is None else state.onset)
        elif not (state.complete or high):
            self._open.pop(role, None)
        text = f"its mean reward is {state.now:+.2f} sd from that of all roles"
        known = not math.isnan(state.typical)
        if known:
            text += f" ({state.typical:+.2f} at the start)"
        if paid is not None:
            text += (
                f"; its advantage and length correlate {paid[0]:+.2f} (95 % above {paid[1]:+.2f})"
            )
        return state.verdict(
            NAME,
            f"{text}; {self._course}",
            NAME if role in self._open else "",
            self._course.severity,
            baseline=state.typical if known else None,
            onset=self._open.get(role, state.onset),
        )


class _Slope:
    """The slope of reward on accuracy over the last records."""

    def __init__(self) -> None:
        self._rows: deque[tuple[int, float, float, float, float]] = deque(maxlen=_WINDOW)

    @property
    def judged(self) -> bool:
        """Whether there is a slope already."""
        return len(self._rows) >= _ENOUGH

    def verdict(self, record: StepRecord) -> Verdict | None:
        accuracy = record.totals.get("accuracy")
        reward = record.totals.get("reward", record.mean(EVERYONE, "reward"))
        if accuracy is None or reward is None or not abs(reward) < ABSURD:
            return None
        stat = record.stat(EVERYONE, "reward")
        spread = math.sqrt(max(accuracy * (1 - accuracy), 0.0))
        sd = stat.sd if stat is not None and stat.sd is not None else spread
        if not (1e-9 < sd < ABSURD and spread > 0.05):
            return None
        self._rows.append((record.step, accuracy, reward, spread, sd))
        if len(self._rows) < _ENOUGH:
            return None
        slope, error = self._fit()
        detached = math.isfinite(error) and slope + _SURE * error < _SLOPE
        return Verdict(
            detector=NAME,
            role=EVERYONE,
            state="drift" if detached else "ok" if slope >= _SLOPE else "watch",
            finding=DETACHED if detached else "",
            statistic="reward",
            value=slope,
            threshold=_SLOPE,
            baseline=1.0,
            onset=self._rows[0][0] if detached else None,
            reason=(
                f"over {len(self._rows)} steps the reward has changed by {slope:.2f} sd per sd of "
                f"accuracy (standard error {error:.2f}); a reward that "
                "pays for correct answers gives 1"
            ),
            severity="input problem" if detached else None,
        )

    def _fit(self) -> tuple[float, float]:
        unit = fmean(row[3] for row in self._rows) / fmean(row[4] for row in self._rows)
        x = [row[1] for row in self._rows]
        y = [row[2] * unit for row in self._rows]
        mx, my = fmean(x), fmean(y)
        sxx = math.fsum((value - mx) ** 2 for value in x)
        if sxx <= 1e-6:
            return 1.0, math.inf
        slope = math.fsum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / sxx
        rest = math.fsum((b - my - slope * (a - mx)) ** 2 for a, b in zip(x, y, strict=True))
        return slope, math.sqrt(rest / (len(x) - 2) / sxx)


CARD = Card(
    name=NAME,
    about=(
        "Watches what rewards pay for: whether a role's reward rises above the others' while its "
        "advantage pays for length, and whether the reward follows the accuracy at all."
    ),
    findings=(
        Finding(
            NAME,
            "{who} has been paid for length since step {onset}",
            "A role earns more than the others, and its longer responses earn most.",
            "input",
            "suspicious",
            (
                "find what pays {role} for length: a reward term, a judge that likes long"
                " responses",
                "pay for the outcome only, or subtract a price per token from {role}'s reward",
                CAP_LENGTH,
                KL_ANCHOR,
            ),
            (SINGHAL, SKALSE, BENCHMARK),
        ),
        Finding(
            DETACHED,
            "The reward has not followed the accuracy since step {onset}",
            "The reward does not rise with the accuracy: it is noise, or pays for something else.",
            "input",
            "input problem",
            ("check the reward function on some responses by hand",),
            (SPURIOUS, GAO, BENCHMARK),
        ),
    ),
    make=_RewardHacking,
    reads=("reward", "reward_bias", "length_credit", "accuracy"),
    needs=("rewards of the roles",),
    order=2,
)
