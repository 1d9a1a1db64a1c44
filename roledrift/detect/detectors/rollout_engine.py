"""``rollout_engine``: what the rollout engine samples from is not the policy that is trained.

The distance between the engine's log-probabilities and the trainer's is compared with that of the
run's own start, because engines differ numerically from trainers, and with how far the policy's own
optimizer steps move it, because later mini-batches are off-policy in healthy runs too. A constant
mismatch, however large, is no finding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from roledrift.detect.abstaining import waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.course import ABSURD
from roledrift.detect.evidence.scales import RATIOS
from roledrift.detect.evidence.start import LEAST
from roledrift.detect.evidence.streams import Stream, StreamState
from roledrift.judgement import Verdict
from roledrift.records import StepRecord

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
        self._chosen: dict[str, tuple[str, ...]] = {}
        self._distances: dict[tuple[str, bool], list[float]] = {}
        self._moves: dict[str, list[float]] = {}

    def read(self, record: StepRecord, role: str) -> float | None:
        gap = self._gap(record, role)
        if gap is None:
            return None
        behind = _is_behind(record, role)
        expected = _usual(self._distances.setdefault((role, behind), []), gap)
        moved = [value for name in _MOVED if (value := _known(record, role, name)) is not None]
        if behind and not moved:
            return None  # It is not known how much of the distance is the policy's own movement.
        if behind and max(moved) >= _STILL:
            move = fmean(math.log(max(one, _NOTHING)) for one in moved)
            usual = _usual(self._moves.setdefault(role, []), move)
            if expected is None or usual is None:
                return None
            expected += max(move - usual, 0.0)
        return None if expected is None else math.exp(max(gap - expected, 0.0))

    def _gap(self, record: StepRecord, role: str) -> float | None:
        found = ((name, _known(record, role, name)) for name in _PARTS)
        parts = {name: value for name, value in found if value is not None}
        k3 = _known(record, role, "rollout.k3")
        if k3 is not None:
            parts["rollout.k3"] = math.sqrt(k3)
        chosen = self._chosen.setdefault(role, tuple(parts)) if parts else ()
        if not chosen or any(name not in parts for name in chosen):
            return None
        return fmean(math.log(max(parts[name], _NOTHING)) for name in chosen)


def _usual(start: list[float], value: float) -> float | None:
    """The median of the records before this one; None while there are too few.

    A record is never compared with a start that contains it: the start would look too quiet.
    """
    middle = median(start) if len(start) >= LEAST else None
    if len(start) < _START:
        start.append(value)
    return middle


def _is_behind(record: StepRecord, role: str) -> bool:
    updates = record.mean(role, "updates")
    if updates is not None:
        return updates > 1
    return not record.labels.get("rollout", "").endswith(", 0 steps between")


def _known(record: StepRecord, role: str, name: str) -> float | None:
    value = record.mean(role, name)
    return value if value is not None and 0.0 <= value < ABSURD else None


class RolloutEngine:
    """Watches the distance between rollout engine and trainer."""

    name = NAME

    def __init__(self, context: Context) -> None:
        gap = Stream("rollout_gap", RATIOS, 1, 0.3, 0.35, 0.2, 0.2, _Gap().read)
        self._gaps = {role: context.board.watch(role, gap) for role in context.workflow.role_names}
        self._streaks = dict.fromkeys(context.workflow.role_names, 0)

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role."""
        verdicts = []
        for role, state in self._gaps.items():
            verdict = _mode(record, role) or self._unserved(record, role)
            verdicts.append(verdict or self._judge(role, state))
        return [one for one in verdicts if one is not None]

    def _judge(self, role: str, state: StreamState) -> Verdict | None:
        if not state.judged:
            if state.known:
                return None
            lacks = state.start.lacks
            return waiting(NAME, role, f"{lacks} more steps" if state.seen else _NEED)
        found = state.complete and state.ratio >= _EFFECT
        reason = (
            f"the engine's log-probabilities are {state.ratio:.1f} times as far from the "
            "trainer's as at the start, beyond what the policy's own steps explain"
        )
        return Verdict(
            detector=NAME,
            role=role,
            state="drift" if found else "watch" if state.leaning else "ok",
            finding="engine_mismatch" if found else "",
            statistic=state.of.name,
            value=state.now,
            baseline=state.typical,
            onset=state.onset if state.leaning else None,
            reason=reason,
            evidence=state.evidence,
            chance=f"against {state.needed:.2f} needed",
            severity="input problem" if found else None,
        )

    def _unserved(self, record: StepRecord, role: str) -> Verdict | None:
        """Whether the engine samples the base model, where the distance to that is known."""
        base, rollout, own = (
            _known(record, role, name) for name in ("reference.k3", "rollout.k3", "update.k3")
        )
        if base is None or rollout is None:
            return None
        served = rollout < _AS_BASE * base or base < _FAR * (own or 0.0) or base <= _NOTHING**2
        self._streaks[role] = 0 if served else self._streaks[role] + 1
        if self._streaks[role] < _PATIENCE:
            return None
        told = (
            f"rollouts are {rollout / base:.2f} times as far from the trained policy as the "
            "base model is"
        )
        return Verdict(
            NAME,
            role,
            "drift",
            "adapter_not_served",
            statistic="rollout.k3",
            value=rollout,
            threshold=_AS_BASE * base,
            onset=record.step,
            reason=told,
            severity="input problem",
        )


def _mode(record: StepRecord, role: str) -> Verdict | None:
    """Log-probabilities of two kinds cannot be compared at all."""
    for kind in ("rollout", "old"):
        share = record.mean(role, f"{kind}.refused")
        if share is not None and share > 0:
            label = record.labels.get(kind, "two temperatures")
            return Verdict(
                NAME,
                role,
                "drift",
                "logprob_mode_mismatch",
                statistic=f"{kind}.refused",
                value=share,
                onset=record.step,
                reason=f"the {kind} log-probabilities are of two kinds ({label})",
                severity="input problem",
            )
    return None


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
        ),
        Finding(
            "adapter_not_served",
            "The engine has not served the adapter of {the} since step {onset}",
            "The rollouts come from the base model: the engine does not serve the adapter.",
            "input",
            "input problem",
            ("check that the rollout engine serves the adapter of {role}, in this step's version",),
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
        ),
    ),
    make=RolloutEngine,
    reads=(*_PARTS, "rollout.k3", "reference.k3", *_MOVED, "update.k3", "updates"),
    needs=(_NEED,),
    order=1,
)
"""Is the trained policy the one that is sampled?"""
