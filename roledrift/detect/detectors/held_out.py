"""``held_out``: the training reward rises, and the held-out score does not.

Between validations the reward is averaged, and both are put on a line over the last half of the
validations. If the reward has gained for certain, and the held-out score by less than a quarter of
that, the policy has learned to please the verifier. Where its responses have become much longer
meanwhile, length is what the verifier pays for.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from roledrift.detect.abstaining import no_verdict
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import ABSURD
from roledrift.detect.evidence.trend import Gain, Thinned
from roledrift.detect.remedies import CAP_LENGTH, KL_ANCHOR
from roledrift.detect.sources import GAO, SINGHAL
from roledrift.detect.units import known, not_logged, run_unit
from roledrift.judgement import Severity, Verdict
from roledrift.records import StepRecord
from roledrift.workflow import Workflow

NAME = "held_out"
GAMING, LENGTH = "verifier_gaming", "paid_for_length"
_VALIDATIONS = 6
_LEAST_VALIDATIONS = 8
_SHARE = 0.25
"""Share of the gain in reward that the held-out score must gain."""

_LEAST = 0.05
"""Gain in reward, as a share of the largest reward so far, that asks for one."""

_LONGER = 1.4
_SURE = 2.0


class _HeldOut:
    def __init__(self, context: Context) -> None:
        self._workflow, self._course = context.workflow, context.course
        self._unit = run_unit(context.workflow)
        self._rewards, self._scores, self._lengths = Thinned(), Thinned(), Thinned()
        self._since: list[float] = []
        self._tokens: list[float] = []
        self._name = ""
        self._most = 0.0
        self._absent = not_logged(NAME, self._workflow, "held-out score")
        self._last: Verdict | None = None
        self._onset: int | None = None

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        reward = record.totals.get("reward", record.totals.get("accuracy"))
        if reward is not None and abs(reward) < ABSURD:
            self._since.append(reward)
        length = known(record, self._unit, "length")
        if length is not None:
            self._tokens.append(length)
        score = self._score(record)
        if score is not None and self._since:
            self._validated(record.step, score)
        if not self._name:
            return [self._absent]
        if self._last is None:
            return [too_few_validations(self._workflow)]
        return [self._last]

    def _score(self, record: StepRecord) -> float | None:
        names = (self._name,) if self._name else ("val_accuracy", "eval_reward")
        for name in names:
            value = record.totals.get(name)
            if value is not None and abs(value) < ABSURD:
                self._name = name
                return value
        return None

    def _validated(self, step: int, score: float) -> None:
        reward = fmean(self._since)
        self._most = max(self._most, abs(reward))
        self._rewards.add(step, reward)
        self._scores.add(step, score)
        if self._tokens:
            self._lengths.add(step, fmean(self._tokens))
        self._since, self._tokens = [], []
        part = max(0.5, min(1.0, _VALIDATIONS / self._scores.records))
        rewards, scores = self._rewards.gain(part), self._scores.gain(part)
        enough = self._scores.records >= _LEAST_VALIDATIONS
        if rewards is not None and scores is not None and enough:
            self._last = self._judge(rewards, scores)

    def _judge(self, rewards: Gain, scores: Gain) -> Verdict:
        sure = rewards.change - _SURE * rewards.error > 0
        enough = rewards.change >= _LEAST * self._most
        # An evaluation's reward is on the scale of the reward; an accuracy only if that is a share.
        unit = 1.0 if self._most <= 1.5 or self._name == "eval_reward" else 1 / self._most
        behind = scores.change + _SURE * scores.error < _SHARE * rewards.change * unit
        drift = sure and enough and behind
        longer = self._longer()
        finding = (LENGTH if longer >= _LONGER else GAMING) if drift else ""
        if drift and self._onset is None:
            self._onset = int(rewards.first)
        elif not drift:
            self._onset = None
        reason = (
            f"since step {rewards.first:.0f} the reward has gained {rewards.change:+.3g} and the "
            f"held-out score {scores.change:+.3g} (standard error {scores.error:.2g})"
        )
        if longer >= _LONGER:
            reason += f"; responses are {longer:.1f} times as long as at the first validation"
        worse: Severity = "input problem"
        falls = scores.change + _SURE * scores.error < 0
        return Verdict(
            detector=NAME,
            role=self._unit,
            state="drift" if drift else "ok",
            finding=finding,
            statistic=self._name,
            value=scores.change,
            baseline=rewards.change,
            onset=self._onset,
            reason=reason,
            severity=(worse if falls else "suspicious") if drift else None,
        )

    def _longer(self) -> float:
        lengths = self._lengths.arrays()[1]
        return float(lengths[-3:].mean() / max(lengths[0], 1.0)) if lengths.size else 1.0


def too_few_validations(workflow: Workflow) -> Verdict:
    """That there are too few validations to compare the reward with."""
    need = f"{_LEAST_VALIDATIONS} validations"
    return no_verdict(NAME, run_unit(workflow), f"needs {need}", need)


CARD = Card(
    name=NAME,
    about="Compares what the reward gains in training with what a held-out score gains meanwhile.",
    findings=(
        Finding(
            GAMING,
            "The reward has risen without the held-out score since step {onset}",
            "The training reward rises and the held-out score does not: the policy has learned to "
            "please the verifier.",
            "input",
            "suspicious",
            (
                "read the best-paid responses of the last steps; the exploit is in them",
                "go back to the checkpoint with the best held-out score",
                "close the hole in the reward, and check that the held-out problems are alike",
                KL_ANCHOR,
            ),
            (GAO, "Pan et al. (2022), The Effects of Reward Misspecification, arXiv 2201.03544"),
        ),
        Finding(
            LENGTH,
            "Length has been paid for, and nothing else, since step {onset}",
            "The reward rises with the length of the responses, and the held-out score does not.",
            "input",
            "suspicious",
            (
                "find what pays for length: a judge that likes it, a sum over tokens or steps",
                "subtract a price per token from the reward",
                CAP_LENGTH,
            ),
            (GAO, SINGHAL),
        ),
    ),
    make=_HeldOut,
    reads=("val_accuracy", "eval_reward", "reward", "length"),
    needs=("validations beside the reward",),
    order=3,
)
