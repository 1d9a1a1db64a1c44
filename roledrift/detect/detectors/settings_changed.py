"""``settings_changed``: a setting that moves policies was changed during the run.

It speaks at the step of the change. A change on purpose is no failure; if harm follows, it is the
cause that the incident names.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import median

from roledrift.detect.abstaining import waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.board import RAISED
from roledrift.detect.evidence.streak import Streak
from roledrift.detect.remedies import LOWER_RATE
from roledrift.detect.sources import ANDRYCHOWICZ, BENCHMARK, PPO, SKALSE
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

    def observe(self, step: int, value: float | None) -> bool:
        """Take one value; whether the setting stands changed."""
        if value is None or not math.isfinite(value) or value <= 0:
            return self.onset is not None
        if len(self._start) < _START:
            self._start.append(value)
            return False
        self._recent.append((step, value))
        low, high = self._down * min(self._start), self._up * max(self._start)
        if self.onset is None and low < value < high:
            return False
        over = [v >= high or v <= low for _, v in self._recent]
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

    def observe(self, step: int, difference: float | None) -> bool:
        """Take how far apart they are; whether they are no longer equal by design."""
        if difference is None or not math.isfinite(difference):
            return self.onset is not None
        if abs(difference) < _ROUNDING:
            self._equal += 1
            self._streak = 0
            self.onset = None if self._equal > 3 * _START else self.onset
        else:
            self._streak += 1
            if self._streak == 1 and self._equal >= _START and self.onset is None:
                self.onset, self._equal = step, 0
        return self.onset is not None


class _SettingsChanged:
    def __init__(self, context: Context) -> None:
        self._board, self._rates = context.board, context.board.rates
        self._roles = roles = context.workflow.role_names
        self._raised = {role: Streak() for role in roles}
        self._steps = {role: _Level(_STEPS, 0.0) for role in roles}
        self._batch = _Level(_BATCH, 1 / _BATCH)
        self._rewards = {role: _Same() for role in roles}
        self._accuracy = _Same()
        self._temperature = ""
        self._heated: tuple[int, str] | None = None

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        verdicts = [self._of_role(role, record) for role in self._roles]
        drift = len(verdicts) > 1 and all(verdict.state == "drift" for verdict in verdicts)
        every = self._of_all(record)
        if drift and every is None and len({verdict.reason for verdict in verdicts}) == 1:
            # One change for all policies is one alert.
            return [replace(verdicts[0], role=EVERYONE), *map(_fine, self._roles)]
        return [*verdicts, *([every] if every else [])]

    def _of_role(self, role: str, record: StepRecord) -> Verdict:
        raised, above = self._rates.raised(role), self._board.above_earlier_rates(role)
        onset = self._raised[role]
        if onset.observe(record.step, max(raised, above) >= RAISED):
            if raised >= RAISED:
                why, factor = f"the learning rate was raised by a factor of {raised:.3g}", raised
            else:
                why, factor = f"the learning rate is {above:.3g} times that of earlier runs", above
            return _verdict(role, "learning_rate_raised", onset.onset, why, factor)
        level, updates = self._steps[role], record.mean(role, "updates")
        if level.observe(record.step, updates):
            why = f"the optimizer steps of the {role} went up by a factor of {level.ratio:.3g}"
            return _verdict(role, "optimizer_steps_changed", level.onset, why, level.ratio)
        reward, bias = self._rewards[role], record.mean(role, "reward_bias")
        if reward.observe(record.step, bias) and bias is not None and bias > 0:
            why = f"the reward of the {role} stopped being that of the other roles"
            return _verdict(role, "reward_changed", reward.onset, why)
        if not self._rates.known and updates is None:
            return waiting(NAME, role, "the learning rate (totals lr) or optimizer steps")
        return _fine(role)

    def _of_all(self, record: StepRecord) -> Verdict | None:
        counted, level = record.counted(EVERYONE, "length"), self._batch
        if level.observe(record.step, None if counted is None else counted[0]):
            why = f"the number of responses per step changed by a factor of {level.ratio:.3g}"
            return _verdict(EVERYONE, "batch_changed", level.onset, why)
        reward, accuracy = record.totals.get("reward"), record.totals.get("accuracy")
        apart = None if reward is None or accuracy is None else reward - accuracy
        # With several roles the mean over responses is not the mean over episodes.
        if len(self._roles) == 1 and self._accuracy.observe(record.step, apart):
            why = "the reward stopped being the accuracy"
            return _verdict(EVERYONE, "reward_changed", self._accuracy.onset, why)
        label = record.labels.get("rollout")
        match = _TEMPERATURE.search(label) if label else None
        if match is not None:
            self._temperature = self._temperature or match[1]
            if match[1] != self._temperature:
                self._heated = self._heated or (record.step, match[1])
        if self._heated is None:
            return None
        why = f"the sampling temperature changed from {self._temperature} to {self._heated[1]}"
        return _verdict(EVERYONE, "temperature_changed", self._heated[0], why)


def _verdict(
    role: str, finding: str, onset: int | None, why: str, factor: float | None = None
) -> Verdict:
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


@lru_cache(maxsize=64)
def _fine(role: str) -> Verdict:
    return Verdict(NAME, role, "ok", reason="no setting has changed")


def _finding(
    name: str, title: str, about: str, *advice: object, sources: tuple[str, ...]
) -> Finding:
    make: Callable[..., Finding] = Finding
    return make(name, title, about, "setting", "suspicious", advice, sources)


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
            sources=(BENCHMARK, f"{ANDRYCHOWICZ}: the learning rate"),
        ),
        _finding(
            "optimizer_steps_changed",
            "{who} has made {value:.3g} times as many optimizer steps since step {onset}",
            "A role's policy makes more optimizer steps per iteration than at the start.",
            "count mini-batches in episodes, so that every role makes as many optimizer steps",
            sources=(f"{PPO}: several steps per batch",),
        ),
        _finding(
            "batch_changed",
            "The number of responses per step changed at step {onset}",
            "A step holds at least twice or at most half as many responses as at the start.",
            "check whether the batch size was changed on purpose",
            sources=(
                "McCandlish et al. (2018), An Empirical Model of Large-Batch Training, "
                "arXiv 1812.06162: gradient noise",
            ),
        ),
        _finding(
            "reward_changed",
            "The reward of {the} changed at step {onset}",
            "Rewards that were equal, of the roles or to the accuracy, no longer are.",
            "find what changed in the reward, and whether that was intended",
            sources=(SKALSE, BENCHMARK),
        ),
        _finding(
            "temperature_changed",
            "The sampling temperature changed at step {onset}",
            "Responses are sampled at another temperature than at the start.",
            "check whether the temperature was changed on purpose",
            sources=("derived from what is compared: docs/detectors/settings_changed.md",),
        ),
    ),
    make=_SettingsChanged,
    reads=("lr", "updates", "reward_bias"),
    needs=("the learning rate (totals lr)",),
    order=0,
)
