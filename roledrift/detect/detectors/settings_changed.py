"""``settings_changed``: a setting that moves policies was changed during the run.

It speaks at the step of the change. A change on purpose is no failure; if harm follows, it is the
cause that the incident names.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Sequence
from statistics import median

from roledrift.detect.abstaining import waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.board import RAISED
from roledrift.detect.remedies import LOWER_RATE
from roledrift.judgement import Verdict
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE

NAME = "settings_changed"
_STEPS = 1.4
_BATCH = 2.0
_PATIENCE = 2
_ROUNDING = 1e-6
_START = 4
_TEMPERATURE = re.compile(r"T=([0-9.]+)")


class _Level:
    """A setting that is constant, or varies little, until it is changed."""

    def __init__(self, up: float, down: float) -> None:
        self._up, self._down = up, down
        self._start: list[float] = []
        self._recent: deque[tuple[int, float]] = deque(maxlen=_PATIENCE)
        self.onset: int | None = None
        self.ratio = 1.0

    def see(self, step: int, value: float | None) -> bool:
        """Take one value; whether the setting stands changed."""
        if value is None or not math.isfinite(value) or value <= 0:
            return self.onset is not None
        if len(self._start) < _START:
            self._start.append(value)
            return False
        self._recent.append((step, value))
        low, high = min(self._start), max(self._start)
        over = [v >= self._up * high or v <= self._down * low for _, v in self._recent]
        if self.onset is None and len(over) == _PATIENCE and all(over):
            self.onset = self._recent[0][0]
        if self.onset is not None:
            self.ratio = value / median(self._start)
            if not any(over):
                self.onset = None
        return self.onset is not None


class _Same:
    """Two numbers that are equal by design, until they are not."""

    def __init__(self) -> None:
        self._equal = self._streak = 0
        self.onset: int | None = None

    def see(self, step: int, difference: float | None) -> None:
        """Take how far apart they are."""
        if difference is None or not math.isfinite(difference):
            return
        if abs(difference) < _ROUNDING:
            self._equal += 1
            self._streak = 0
            self.onset = None if self.onset is None or self._equal > 3 * _START else self.onset
            return
        self._streak += 1
        if self._streak == 1 and self._equal >= _START and self.onset is None:
            self.onset, self._equal = step, 0


class SettingsChanged:
    """Watches the learning rates, optimizer steps, batch size and sampling temperature."""

    name = NAME

    def __init__(self, context: Context) -> None:
        self._workflow = context.workflow
        self._board = context.board
        self._rates = context.board.rates
        self._raised: dict[str, int] = {}
        self._steps = {role: _Level(_STEPS, 0.0) for role in context.workflow.role_names}
        self._batch = _Level(_BATCH, 1 / _BATCH)
        self._rewards = {role: _Same() for role in context.workflow.role_names}
        self._accuracy = _Same()
        self._temperature: str | None = None
        self._heated: tuple[int, str] | None = None

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role whose settings are known, and one for all."""
        verdicts = {role: self._of_role(role, record) for role in self._workflow.role_names}
        found = [one for one in verdicts.values() if one.state == "drift"]
        same = len(found) == len(verdicts) > 1 and len({one.reason for one in found}) == 1
        every = self._of_all(record)
        if same and every is None:
            # One change for all policies is one alert.
            first = found[0]
            onset = first.onset or record.step
            every = _verdict(EVERYONE, first.finding, onset, first.reason, first.value)
            return [every, *(_fine(role) for role in verdicts)]
        return [*verdicts.values(), *([every] if every else [])]

    def _of_role(self, role: str, record: StepRecord) -> Verdict:
        raised = self._rates.raised(role) if self._rates.known else 1.0
        if raised >= RAISED:
            onset = self._raised.setdefault(role, record.step)
            why = f"the learning rate was raised by a factor of {raised:.3g}"
            return _verdict(role, "learning_rate_raised", onset, why, raised)
        above = self._board.above_earlier_rates(role)
        if above >= RAISED:
            onset = self._raised.setdefault(role, record.step)
            why = f"the learning rate is {above:.3g} times that of earlier runs"
            return _verdict(role, "learning_rate_raised", onset, why, above)
        self._raised.pop(role, None)
        level = self._steps[role]
        if level.see(record.step, record.mean(role, "updates")) and level.onset is not None:
            why = f"the optimizer steps of the {role} went up by a factor of {level.ratio:.3g}"
            return _verdict(role, "optimizer_steps_changed", level.onset, why, level.ratio)
        reward = self._rewards[role]
        reward.see(record.step, record.mean(role, "reward_bias"))
        if reward.onset is not None:
            bias = record.mean(role, "reward_bias") or 0.0
            if bias > 0:
                why = f"the reward of the {role} stopped being that of the other roles"
                return _verdict(role, "reward_changed", reward.onset, why)
        if not self._rates.known and record.mean(role, "updates") is None:
            return waiting(NAME, role, "the learning rate (totals lr) or optimizer steps")
        return _fine(role)

    def _of_all(self, record: StepRecord) -> Verdict | None:
        stat = record.stat(EVERYONE, "length")
        level = self._batch
        if level.see(record.step, None if stat is None else stat.n) and level.onset is not None:
            why = f"the number of responses per step changed by a factor of {level.ratio:.3g}"
            return _verdict(EVERYONE, "batch_changed", level.onset, why)
        reward, accuracy = record.totals.get("reward"), record.totals.get("accuracy")
        # With several roles the mean over responses is not the mean over episodes.
        alone = len(self._workflow.roles) == 1
        if alone and reward is not None and accuracy is not None:
            self._accuracy.see(record.step, reward - accuracy)
        if self._accuracy.onset is not None:
            why = "the reward stopped being the accuracy"
            return _verdict(EVERYONE, "reward_changed", self._accuracy.onset, why)
        found = _TEMPERATURE.search(record.labels.get("rollout", ""))
        if found is not None:
            now = found[1]
            if self._temperature is None:
                self._temperature = now
            elif now != self._temperature:
                self._heated = self._heated or (record.step, now)
        if self._heated is not None:
            why = f"the sampling temperature changed from {self._temperature} to {self._heated[1]}"
            return _verdict(EVERYONE, "temperature_changed", self._heated[0], why)
        return None


def _verdict(role: str, finding: str, onset: int, why: str, factor: float | None = None) -> Verdict:
    return Verdict(
        NAME,
        role,
        "drift",
        finding,
        statistic="" if factor is None else "factor",
        value=factor,
        onset=onset,
        reason=why,
        severity="suspicious",
        cause=why,
    )


def _fine(role: str) -> Verdict:
    return Verdict(NAME, role, "ok", reason="no setting has changed")


def _finding(name: str, title: str, about: str, *advice: object) -> Finding:
    make: Callable[..., Finding] = Finding
    return make(name, title, about, "setting", "suspicious", advice)


CARD = Card(
    name=NAME,
    about=(
        "Watches settings that move policies: the learning rate of each policy beyond its warm-up, "
        "optimizer steps per role and iteration, responses per step, the temperature, what is "
        "rewarded."
    ),
    findings=(
        _finding(
            "learning_rate_raised",
            "The learning rate of {the} has been {value:.3g} times as high since step {onset}",
            "The learning rate is higher than at the end of its warm-up, or than in earlier runs.",
            "if this was not intended, restore the learning rate",
            LOWER_RATE,
        ),
        _finding(
            "optimizer_steps_changed",
            "{who} has made {value:.3g} times as many optimizer steps since step {onset}",
            "A role's policy makes more optimizer steps per iteration than at the start.",
            "count mini-batches in episodes, so that every role makes as many optimizer steps",
        ),
        _finding(
            "batch_changed",
            "The number of responses per step changed at step {onset}",
            "A step holds at least twice or at most half as many responses as at the start.",
            "check whether the batch size was changed on purpose",
        ),
        _finding(
            "reward_changed",
            "The reward of {the} changed at step {onset}",
            "Rewards that were equal, of the roles or to the accuracy, no longer are.",
            "find what changed in the reward, and whether that was intended",
        ),
        _finding(
            "temperature_changed",
            "The sampling temperature changed at step {onset}",
            "Responses are sampled at another temperature than at the start.",
            "check whether the temperature was changed on purpose",
        ),
    ),
    make=SettingsChanged,
    reads=("lr", "updates", "reward_bias"),
    needs=("the learning rate (totals lr)",),
    order=0,
)
"""What was changed."""
