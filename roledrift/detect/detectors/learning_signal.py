"""``learning_signal``: how many of the rollouts that were paid for could teach anything.

GRPO centres rewards within a group, so a group of equal rewards has no gradient. Whether it is all
right or all wrong makes the difference between a task that is solved, which is success, and one
that is too hard. A spread of advantages or rewards that dies is the same failure, in logs that do
not count groups.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import fmean, median

from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import RATIOS, SHARES
from roledrift.detect.evidence.streams import MINOR, Stream
from roledrift.detect.sources import DAPO, GRPO
from roledrift.detect.units import known, not_logged, reader, too_short, units
from roledrift.judgement import Severity, State, Verdict
from roledrift.metric_names import COMPONENT, COMPONENT_STD, pays_for_outcome
from roledrift.records import StepRecord

NAME = "learning_signal"
HARD, SOLVED, DEGENERATE, FLAT = (
    "task_too_hard",
    "task_solved",
    "groups_degenerate",
    "advantage_collapse",
)
_WINDOW = 10
_SOLVED_WINDOW = 150
"""Records for which a solved task must have gone on: solving it is success, going on is waste."""

_MOST_HARD = 0.25
_LEAST_SOLVED = 0.75
_HALF = 0.5
_MANY = 0.6
_MOST = 0.9
_WASTED = 0.7
_LEFT = 0.2
"""Share of its start that is left of a spread that has collapsed."""

IDLE = Stream(
    "zero_variance", SHARES, 1, 0.15, 0.15, 0.05, 0.2, reader("zero_variance"), weight=MINOR
)
ADVANTAGES = Stream(
    "advantage_std", RATIOS, -1, math.log(2), 0.15, 0.05, 0.2, reader("advantage_std"), weight=MINOR
)
REWARDS = Stream(
    "reward_std", RATIOS, -1, math.log(2), 0.3, 0.1, 0.3, reader("reward_std"), weight=MINOR
)


class _Outcome:
    """What share is right: of the accuracy, else of the reward function that pays for results."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._most = 0.0
        self._recent: deque[float] = deque(maxlen=_SOLVED_WINDOW)
        self._steps: deque[int] = deque(maxlen=_SOLVED_WINDOW)

    def observe(self, record: StepRecord, unit: str, course: float | None) -> None:
        """Take one record."""
        value = known(record, unit, "correct")
        value = record.totals.get("accuracy") if value is None else value
        if value is None:
            value = self._component(record, unit)
        if value is None:
            value = course
        if value is not None and 0.0 <= value <= 1.0:
            self._recent.append(value)
            self._steps.append(record.step)

    def _component(self, record: StepRecord, unit: str) -> float | None:
        if self._name is None:
            names = (name for name in record.groups.get(unit, ()) if name.startswith(COMPONENT))
            self._name = next((name for name in names if pays_for_outcome(name)), "")
        if not self._name:
            return None
        mean = known(record, unit, self._name)
        if mean is None:
            return None
        # A reward of 0 or M with mean m and standard deviation s has M = (m^2 + s^2) / m.
        spread = known(record, unit, COMPONENT_STD + self._name.removeprefix(COMPONENT))
        if spread is not None and mean > 1e-9:
            self._most = max(self._most, (mean * mean + spread * spread) / mean)
        return mean / max(self._most, 1.0)

    @property
    def level(self) -> float | None:
        """Mean of the last records; None if unknown."""
        return fmean(list(self._recent)[-_WINDOW:]) if self._recent else None

    @property
    def solved_since(self) -> int | None:
        """First step of a whole window in which most responses are right; None without one."""
        if len(self._recent) < _SOLVED_WINDOW or fmean(self._recent) < _LEAST_SOLVED:
            return None
        pairs = zip(self._steps, self._recent, strict=True)
        return next(step for step, value in pairs if value >= _LEAST_SOLVED)


class _LearningSignal:
    def __init__(self, context: Context) -> None:
        self._workflow, self._course = context.workflow, context.course
        watch = context.board.watch
        # Rows of a role that is not trained teach nothing whatever their rewards are.
        idle = {role.name for role in context.workflow.roles if not role.trained}
        self._units = [unit for unit in units(context.workflow) if unit not in idle]
        self._idle = {unit: watch(unit, IDLE) for unit in self._units}
        self._spreads = {
            unit: (watch(unit, ADVANTAGES), watch(unit, REWARDS)) for unit in self._units
        }
        self._outcomes = {unit: _Outcome() for unit in self._units}
        self._shares: dict[str, deque[float]] = {}
        self._since: dict[tuple[str, str], int] = {}
        self._steps: dict[str, deque[int]] = {}
        self._absent = not_logged(NAME, self._workflow, "share of groups with equal rewards")
        self._short = too_short(NAME, self._workflow, _WINDOW)

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        verdicts = []
        for unit in self._units:
            self._outcomes[unit].observe(record, unit, self._course.level)
            share = known(record, unit, "zero_variance")
            if share is not None:
                self._shares.setdefault(unit, deque(maxlen=_SOLVED_WINDOW)).append(share)
                self._steps.setdefault(unit, deque(maxlen=_SOLVED_WINDOW)).append(record.step)
            advantages, rewards = self._spreads[unit]
            if share is not None or advantages.judged or rewards.judged:
                verdicts.append(self._judge(unit, record.step))
        if verdicts:
            return verdicts
        seen = self._shares or any(
            spread.seen for pair in self._spreads.values() for spread in pair
        )
        return [self._short if seen else self._absent]

    def _judge(self, unit: str, step: int) -> Verdict:
        finding, severity, value, reason = self._finding(unit)
        key = (unit, finding)
        if self._since:
            for other in [
                earlier for earlier in self._since if earlier[0] == unit and earlier != key
            ]:
                del self._since[other]
        onset = None
        if finding:
            onset = self._since.setdefault(key, self._onset(unit, finding, step))
        state: State = "drift" if finding else "ok"
        return Verdict(
            detector=NAME,
            role=unit,
            state=state,
            finding=finding,
            statistic="zero_variance",
            value=value,
            onset=onset,
            reason=reason,
            severity=severity if finding else None,
        )

    def _onset(self, unit: str, finding: str, step: int) -> int:
        streams = (self._idle[unit], *self._spreads[unit])
        if finding in (DEGENERATE, FLAT):
            return min(
                (stream.onset for stream in streams if stream.onset is not None), default=step
            )
        if finding == SOLVED:
            return self._outcomes[unit].solved_since or step
        return list(self._steps.get(unit, (step,)))[-_WINDOW:][0]

    def _finding(self, unit: str) -> tuple[str, Severity, float | None, str]:
        """Finding, severity, share and reason."""
        shares = list(self._shares.get(unit, ()))
        level = self._outcomes[unit].level
        lately = median(shares[-_WINDOW:]) if len(shares) >= _WINDOW else None
        text = "" if level is None else f"; {level:.0%} of the responses are right"
        reason = "" if lately is None else f"{lately:.0%} of the groups have equal rewards{text}"
        easy = level is not None and level >= _LEAST_SOLVED
        if lately is not None:
            if level is not None and level <= _MOST_HARD and lately >= _MANY:
                severity: Severity = "input problem" if lately >= _MOST else "suspicious"
                return HARD, severity, lately, reason
            full = len(shares) == _SOLVED_WINDOW and self._outcomes[unit].solved_since is not None
            if full and median(shares) >= _WASTED:
                return SOLVED, "suspicious", lately, reason
            idle = self._idle[unit]
            gained = self._course.direction == "rose"  # What is solved has equal rewards too.
            if not (easy or gained) and idle.complete and lately >= _HALF:
                return DEGENERATE, "suspicious", lately, f"{idle.typical:.0%} -> {reason}"
        for spread in () if easy else self._spreads[unit]:
            if spread.complete and spread.ratio <= _LEFT:
                name = "advantages" if spread.of is ADVANTAGES else "rewards"
                why = (
                    f"the standard deviation of the {name} is {spread.ratio:.0%} of that at the "
                    f"start ({spread.typical:.3g} -> {spread.now:.3g})"
                )
                return FLAT, "suspicious", lately, why
        return "", "suspicious", lately, reason or "rewards and advantages still differ"


_DAPO = f"{DAPO}: dynamic sampling"
_SAMPLE = "leave out groups of equal reward and sample others (verl: filter_groups)"

CARD = Card(
    name=NAME,
    about=(
        "Watches the share of advantage groups with equal rewards, from which nothing is learned, "
        "and tells groups that are all wrong from groups that are all right."
    ),
    findings=(
        Finding(
            HARD,
            "The task has been too hard for {the} since step {onset}",
            "Most groups earn equal rewards because nearly all of their responses are wrong.",
            "outcome",
            "suspicious",
            (
                "start from easier problems, or sort problems by their measured pass rate",
                "sample more responses per problem, so that some are right",
                _SAMPLE,
                "train on demonstrations first",
            ),
            (_DAPO, GRPO),
        ),
        Finding(
            SOLVED,
            "The task has been solved since step {onset}: further steps teach {the} little",
            "Most groups earn equal rewards because nearly all of their responses are right.",
            "outcome",
            "suspicious",
            ("stop the run and keep the checkpoint, or go on with harder problems", _SAMPLE),
            (_DAPO,),
        ),
        Finding(
            DEGENERATE,
            "Ever more groups of {the} have had equal rewards since step {onset}",
            "Half of the groups or more teach nothing, and the task is neither solved nor too "
            "hard: problems are either always or never solved.",
            "outcome",
            "suspicious",
            (_SAMPLE, "use problems of middling difficulty"),
            (_DAPO, GRPO),
        ),
        Finding(
            FLAT,
            "What {the} learns from has had no spread since step {onset}",
            "The advantages or the rewards of a batch hardly differ any more.",
            "outcome",
            "suspicious",
            (
                "check the reward function: it may give everything the same reward",
                _SAMPLE,
            ),
            (GRPO,),
        ),
    ),
    make=_LearningSignal,
    reads=("zero_variance", "advantage_std", "reward_std", "accuracy", "reward"),
    needs=("the share of groups with equal rewards",),
    order=2,
)
