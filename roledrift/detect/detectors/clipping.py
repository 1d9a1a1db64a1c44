"""``clipping``: how many tokens the clip of the probability ratio takes out of the gradient."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import fmean

from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import SHARES
from roledrift.detect.evidence.streams import MINOR, Stream
from roledrift.detect.remedies import LOWER_RATE
from roledrift.detect.sources import DAPO, PPO
from roledrift.detect.units import known, not_logged, reader, units
from roledrift.judgement import Verdict
from roledrift.records import StepRecord

NAME = "clipping"
SATURATED, LOPSIDED = "clip_saturation", "clip_asymmetry"
_MANY = 0.2
_MOST = 0.4
_SOME = 0.1
_TIMES = 3.0
_WINDOW = 20

CLIPPED = Stream(
    "clip_fraction", SHARES, 1, 0.1, 0.05, 0.02, 0.3, reader("clip_fraction"), weight=MINOR
)


class _Clipping:
    def __init__(self, context: Context) -> None:
        self._workflow = context.workflow
        self._units = units(context.workflow)
        self._clipped = {unit: context.board.watch(unit, CLIPPED) for unit in self._units}
        self._recent: dict[str, deque[tuple[int, float, float, float]]] = {}

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        verdicts = []
        for unit in self._units:
            share = known(record, unit, "clip_fraction")
            if share is None:
                continue
            low, high = (known(record, unit, name) for name in ("clip_low", "clip_high"))
            recent = self._recent.setdefault(unit, deque(maxlen=_WINDOW))
            recent.append((record.step, share, low or 0.0, high or 0.0))
            verdicts.append(self._judge(unit))
        return verdicts or ([] if self._recent else [self._absent()])

    def _absent(self) -> Verdict:
        return not_logged(NAME, self._workflow, "share of clipped tokens")

    def _judge(self, unit: str) -> Verdict:
        state, recent = self._clipped[unit], self._recent[unit]
        _, share, low, high = (fmean(column) for column in zip(*recent, strict=True))
        full = len(recent) == _WINDOW
        finding, onset = "", recent[0][0]
        reason = f"{share:.1%} of the tokens are clipped"
        if state.complete and share >= _MANY:
            finding, onset = SATURATED, state.onset or onset
            reason += f" ({state.typical:.1%} at the start)"
        elif full and share >= _MOST:
            finding = SATURATED
        elif full and share >= _SOME and max(low, high) >= _TIMES * max(min(low, high), 1e-9) > 0:
            finding = LOPSIDED
        if low or high:
            reason += f": {low:.1%} below and {high:.1%} above"
        return Verdict(
            detector=NAME,
            role=unit,
            state="drift" if finding else "watch" if state.leaning else "ok",
            finding=finding,
            statistic="clip_fraction",
            value=share,
            onset=onset if finding else None,
            reason=reason,
            severity="suspicious" if finding else None,
        )


_PPO = f"{PPO}: the clip"

CARD = Card(
    name=NAME,
    about="Watches the share of tokens whose gradient the clip takes away, and on which side.",
    findings=(
        Finding(
            SATURATED,
            "Many tokens of {the} have been clipped since step {onset}",
            "A large share of the tokens is clipped and has no gradient: the steps are too large, "
            "or too many are made per batch of rollouts.",
            "movement",
            "suspicious",
            (
                LOWER_RATE,
                "make fewer optimizer steps per batch of rollouts (TRL: num_iterations; verl:"
                " ppo_epochs, ppo_mini_batch_size)",
                "check that the log-probabilities of the rollout are those of the policy",
            ),
            (_PPO,),
        ),
        Finding(
            LOPSIDED,
            "Tokens of {the} have been clipped on one side since step {onset}",
            "One side of the clip takes away three times as many tokens as the other.",
            "movement",
            "suspicious",
            (
                "widen the clip on the side that is full (TRL: epsilon_high; verl:"
                " clip_ratio_high)",
                LOWER_RATE,
            ),
            (_PPO, f"{DAPO}: clip-higher"),
        ),
    ),
    make=_Clipping,
    reads=("clip_fraction", "clip_low", "clip_high"),
    needs=("the share of clipped tokens",),
)
