"""``value_head``: the critic of PPO predicts returns worse than their mean would."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import fmean

from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import RATIOS
from roledrift.detect.evidence.streams import MINOR, Stream
from roledrift.detect.sources import PPO
from roledrift.detect.units import known, not_logged, reader, units
from roledrift.judgement import Verdict
from roledrift.records import StepRecord

NAME = "value_head"
DIVERGED = "value_divergence"
_WINDOW = 10
_WARM_UP = 20
"""Records in which a critic may be bad: it begins without any knowledge."""

_TIMES = 3.0

LOSS = Stream(
    "value_loss", RATIOS, 1, math.log(2), 0.3, 0.1, 0.3, reader("value_loss"), weight=MINOR
)


class _ValueHead:
    def __init__(self, context: Context) -> None:
        self._workflow = context.workflow
        self._units = units(context.workflow)
        self._losses = {unit: context.board.watch(unit, LOSS) for unit in self._units}
        self._explained: dict[str, deque[tuple[int, float]]] = {}
        self._count = 0
        self._absent = not_logged(NAME, self._workflow, "value head")

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        self._count += 1
        verdicts = []
        for unit in self._units:
            value = known(record, unit, "explained_variance")
            if value is not None:
                self._explained.setdefault(unit, deque(maxlen=_WINDOW)).append((record.step, value))
            if value is not None or self._losses[unit].judged:
                verdicts.append(self._judge(unit))
        if verdicts or self._explained or any(state.seen for state in self._losses.values()):
            return verdicts
        return [self._absent]

    def _judge(self, unit: str) -> Verdict:
        recent, loss = self._explained.get(unit, deque()), self._losses[unit]
        worse = (
            len(recent) == _WINDOW
            and self._count > _WARM_UP
            and all(value < 0 for _, value in recent)
        )
        grown = loss.complete and loss.ratio >= _TIMES
        parts = []
        if recent:
            parts.append(f"explained variance {fmean(value for _, value in recent):.2f}")
        if loss.known:
            parts.append(f"loss {loss.ratio:.2f} times that at the start")
        drift = worse or (grown and not recent)
        return Verdict(
            detector=NAME,
            role=unit,
            state="drift" if drift else "watch" if grown else "ok",
            finding=DIVERGED if drift else "",
            statistic="explained_variance" if recent else "value_loss",
            value=recent[-1][1] if recent else loss.now,
            onset=(recent[0][0] if worse else loss.onset) if drift else None,
            reason="; ".join(parts),
            severity="suspicious" if drift else None,
        )


CARD = Card(
    name=NAME,
    about="For PPO with a critic: whether its predictions are worse than the mean return.",
    findings=(
        Finding(
            DIVERGED,
            "The critic of {the} has predicted worse than the mean since step {onset}",
            "The explained variance is negative, so the advantages are noisier than without a "
            "critic.",
            "movement",
            "suspicious",
            (
                "lower the critic's learning rate, or clip its loss",
                "train the critic for some steps before the policy",
                "use a method without a critic (GRPO, RLOO)",
            ),
            (
                PPO,
                "Ahmadian et al. (2024), Back to Basics: REINFORCE for RLHF, arXiv 2402.14740",
            ),
        ),
    ),
    make=_ValueHead,
    reads=("explained_variance", "value_loss"),
    needs=("the explained variance of a critic",),
)
