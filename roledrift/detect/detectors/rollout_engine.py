"""``rollout_engine``: what the rollout engine samples from is not the policy that is trained.

The distance between the engine's log-probabilities and the trainer's is compared with that of the
run's own start, because engines differ numerically from trainers, and with how far the policy's own
optimizer steps move it, because later mini-batches are off-policy in healthy runs too. A constant
mismatch, however large, is no finding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean, median

from roledrift.detect.abstaining import waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.distance import Distance
from roledrift.detect.evidence.scales import ABSURD, RATIOS
from roledrift.detect.evidence.start import LEAST
from roledrift.detect.evidence.streak import Streak
from roledrift.detect.evidence.streams import Stream, StreamState
from roledrift.detect.sources import BENCHMARK
from roledrift.detect.units import mean_of, units
from roledrift.judgement import Verdict
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE

NAME = "rollout_engine"
_NOTHING = 1e-4
"""Nats below which two ways of computing one log-probability differ anyway."""

_START = 8
_STILL = 1e-3
"""Largest change of a log-probability below which a policy does not move."""

_EFFECT = 2.0
"""Times the distance at the start that is a fault; engines wander by less."""

_PARTS = ("rollout.peak", "rollout.log_ppl_abs_diff")
_MOVED = ("update.log_ppl_abs_diff", "update.peak")
_AS_BASE = 0.5
_FAR = 10.0
_PATIENCE = 3
_NEED = "log-probabilities of the rollout engine and of the trainer"


class _Gap:
    """Distance of the engine from the trainer, over the distance that is to be expected.

    Rows that are scored by the very weights that sampled them differ by numerical noise, and by as
    much in every record. Rows that are scored after further optimizer steps also differ by those
    steps. So the expected distance is that of the start, times as much as the policy moves farther
    than at the start. Where it moves less, nothing is expected of it: a constant mismatch stays.
    """

    def __init__(self) -> None:
        self._distance = Distance(_NOTHING)
        self._distances: dict[tuple[str, bool], list[float]] = {}
        self._moves: dict[str, list[float]] = {}

    def read(self, record: StepRecord, role: str) -> float | None:
        parts = _parts(record, role, _PARTS)
        k3 = _known(record, role, "rollout.k3")
        if k3 is not None:
            parts["rollout.k3"] = math.sqrt(k3)
        gap = self._distance.log(role, parts)
        if gap is None:
            return None
        behind = _is_behind(record, role)
        expected = _usual(self._distances.setdefault((role, behind), []), gap)
        moved = _parts(record, role, _MOVED).values() if behind else ()
        if behind and not moved:
            return None  # It is not known how much of the distance is the policy's own movement.
        if moved and max(moved) >= _STILL:
            move = fmean(math.log(max(value, _NOTHING)) for value in moved)
            usual = _usual(self._moves.setdefault(role, []), move)
            if expected is None or usual is None:
                return None
            expected += max(move - usual, 0.0)
        return None if expected is None else math.exp(max(gap - expected, 0.0))


def _usual(start: list[float], value: float) -> float | None:
    """The median of the records before this one; None while there are too few.

    A record is never compared with a start that contains it: the start would look too quiet.
    """
    middle = median(start) if len(start) >= LEAST else None
    if len(start) < _START:
        start.append(value)
    return middle


def _is_behind(record: StepRecord, role: str) -> bool:
    updates = mean_of(record, role, "updates")
    if updates is not None:
        return updates > 1
    return not record.labels.get("rollout", "").endswith(", 0 steps between")


def _known(record: StepRecord, role: str, name: str) -> float | None:
    value = mean_of(record, role, name)
    return value if value is not None and 0.0 <= value < ABSURD else None


def _parts(record: StepRecord, role: str, names: Sequence[str]) -> dict[str, float]:
    values = ((name, _known(record, role, name)) for name in names)
    return {name: value for name, value in values if value is not None}


class _RolloutEngine:
    def __init__(self, context: Context) -> None:
        roles = units(context.workflow)
        gap = Stream("rollout_gap", RATIOS, 1, 0.3, 0.35, 0.2, 0.2, _Gap().read)
        self._gaps = {role: context.board.watch(role, gap) for role in roles}
        self._unserved = {role: Streak() for role in roles}

    def update(self, record: StepRecord) -> Iterator[Verdict | None]:
        together = EVERYONE in self._gaps and self._gaps[EVERYONE].seen
        for role, state in self._gaps.items():
            aside = not state.seen and (role == EVERYONE or together)
            verdict = _mode(record, role) or self._adapter(record, role)
            yield verdict or (None if aside else _judge(state))

    def _adapter(self, record: StepRecord, role: str) -> Verdict | None:
        """Whether the engine samples the base model, where the distance to that is known."""
        base = _known(record, role, "reference.k3")
        rollout = None if base is None else _known(record, role, "rollout.k3")
        if base is None or rollout is None:
            return None
        own = _known(record, role, "update.k3")
        served = rollout < _AS_BASE * base or base < _FAR * (own or 0.0) or base <= _NOTHING**2
        if self._unserved[role].observe(record.step, not served) < _PATIENCE:
            return None
        why = f"rollouts are {rollout / base:.2f} times as far from the trained policy as the "
        why += "base model is"
        return _fault(
            role, "adapter_not_served", record, "rollout.k3", rollout, why, _AS_BASE * base
        )


def _judge(state: StreamState) -> Verdict | None:
    if not state.judged:
        return None if state.known else waiting(NAME, state.role, state.lacking(_NEED))
    return state.verdict(
        NAME,
        f"the engine's log-probabilities are {state.ratio:.1f} times as far from the "
        "trainer's as at the start, beyond what the policy's own steps explain",
        "engine_mismatch" if state.complete and state.ratio >= _EFFECT else "",
        "input problem",
    )


def _mode(record: StepRecord, role: str) -> Verdict | None:
    """Log-probabilities of two kinds cannot be compared at all."""
    for kind in ("rollout", "old"):
        share = mean_of(record, role, f"{kind}.refused")
        if share is not None and share > 0:
            label = record.labels.get(kind, "two temperatures")
            why = f"the {kind} log-probabilities are of two kinds ({label})"
            return _fault(role, "logprob_mode_mismatch", record, f"{kind}.refused", share, why)
    return None


def _fault(
    role: str,
    finding: str,
    record: StepRecord,
    statistic: str,
    value: float,
    why: str,
    threshold: float | None = None,
) -> Verdict:
    return Verdict(
        NAME,
        role,
        "drift",
        finding,
        statistic,
        value,
        threshold,
        onset=record.step,
        reason=why,
        severity="input problem",
    )


CARD = Card(
    name=NAME,
    about=(
        "Compares the log-probabilities of the rollout engine with the trainer's, relative to the "
        "start of the run and to how far the policy's own optimizer steps move it."
    ),
    findings=(
        Finding(
            "engine_mismatch",
            "The engine has not sampled the trained policy of {the} since step {onset}",
            "The engine samples from something else than the policy that is trained: other "
            "weights, an old adapter, another temperature.",
            "input",
            "input problem",
            (
                "check that the rollout engine serves the adapter of {role}, in this step's"
                " version",
                "check that engine and trainer use the same temperature and the same logits",
            ),
            (
                "Yao et al. (2025), fengyao.notion.site/off-policy-rl: engine and trainer differ",
                "huggingface/trl#3867: truncated importance sampling",
                BENCHMARK,
            ),
        ),
        Finding(
            "adapter_not_served",
            "The engine has not served the adapter of {the} since step {onset}",
            "The rollouts come from the base model: the engine does not serve the adapter.",
            "input",
            "input problem",
            ("check that the rollout engine serves the adapter of {role}, in this step's version",),
            ("modelscope/ms-swift#9855: rollouts of the base model", BENCHMARK),
        ),
        Finding(
            "logprob_mode_mismatch",
            "Log-probabilities of {the} have been of two kinds since step {onset}",
            "Log-probabilities that are compared were computed at different temperatures.",
            "input",
            "input problem",
            (
                "compute both log-probabilities at the sampling temperature, on processed logits"
                " (vLLM: logprobs_mode='processed_logprobs')",
            ),
            ("huggingface/trl#4159: log-probabilities without the temperature",),
        ),
    ),
    make=_RolloutEngine,
    reads=(*_PARTS, "rollout.k3", "reference.k3", *_MOVED, "update.k3", "updates"),
    needs=(_NEED,),
    order=1,
)
