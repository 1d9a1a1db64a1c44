"""``gradient_amplification``: the role with several slots drifts while the others stay flat.

The paper's account: in an isolated policy, N slots that earn the same advantage push one set of
parameters N times in one direction. The symptom is policy movement of that role alone; the
mechanism is coherence of its slots' gradients. The symptom also has other causes (noisy credit and
a hot learning rate make a single role without any multiplicity collapse alike), so the name is
given only when the mechanism was measured; without it the finding is ``role_drift``.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from roledrift.config import BaselineConfig, Config
from roledrift.detect.baseline import LENGTH, MOVEMENT, Baseline, Warmup, measured, more_steps
from roledrift.detect.sequential import Alarm, Cusum, chance_of, decision_for
from roledrift.records import State, StepRecord, Verdict
from roledrift.thresholds import GradientAmplificationConfig
from roledrift.workflow import Workflow

NAME = "gradient_amplification"
ROLE_DRIFT = "role_drift"
"""The lesser finding: the symptom without the mechanism."""

SOURCES: Mapping[str, float] = {"update.k3": 1.0, "old.k3": 1.0, "rollout.chi2": 2.0}
"""What measures movement, best first, and its size for 1 nat of k3 (small steps: chi² = 2 k3)."""

_BEST = "update.k3"
_UPDATE_NEED = "update.k3 (re-score a few rows after the optimizer step)"
_ENOUGH_GRAMS = 3
_ZERO = 1e-6


class _Movement:
    """How far one role's policy moves per step, in every way that was measured."""

    def __init__(self, settings: GradientAmplificationConfig, baseline: BaselineConfig) -> None:
        self.warmups = {source: Warmup(baseline, MOVEMENT) for source in SOURCES}
        self.recent: dict[str, deque[float]] = {
            source: deque(maxlen=max(settings.median_of, 1)) for source in SOURCES
        }

    def see(self, record: StepRecord, role: str) -> None:
        """Take one record."""
        for source, warmup in self.warmups.items():
            value = measured(record.mean(role, source))
            warmup.see(value)
            if value is not None:
                self.recent[source].append(value)

    @property
    def source(self) -> str:
        """The best source that was ever measured and can move; empty if there is none.

        The ratio of old to current policy is 1 by construction as long as every batch is used for
        one optimizer step: such a constant zero measures nothing.
        """
        for source, warmup in self.warmups.items():
            base = warmup.baseline
            constant = base is not None and base.typical <= _ZERO and source != _BEST
            if warmup.seen and not constant:
                return source
        return ""

    def now(self, source: str) -> float | None:
        """Median over the last records; None before there are any."""
        return median(self.recent[source]) if self.recent[source] else None


@dataclass(frozen=True, slots=True)
class _Contrast:
    """Movement of the role in question beside that of the steadiest other role."""

    source: str
    own: float
    baseline: Baseline
    other: str
    other_now: float
    other_base: float | None


class GradientAmplification:
    """Watches roles with several slots and a policy of their own.

    Drift needs all of, for ``patience`` records: movement (a median over ``median_of`` records) at
    ``drift_ratio`` times the baseline, above ``floor`` and at ``contrast`` times that of the
    steadiest role without multiplicity; that role being flat against its own baseline; and a
    completed CUSUM of standardised log-movement.

    Args:
        workflow: Roles, slots and policies.
        config: Its section and the baseline.
    """

    name = NAME
    reads = frozenset(SOURCES)

    def __init__(self, workflow: Workflow, config: Config) -> None:
        self._settings = settings = config.detectors.gradient_amplification
        self._workflow = workflow
        self._singles = tuple(role.name for role in workflow.roles if role.slots == 1)
        self._moves = {role: _Movement(settings, config.baseline) for role in workflow.role_names}
        self._refusals = {role: self._refusal(role) for role in workflow.role_names}
        watched = [role for role, refusal in self._refusals.items() if not refusal]
        self._alarms = {
            role: Alarm(
                Cusum(settings.reference, decision_for(settings.false_alarms)),
                patience=settings.patience,
                forget_after=config.close_after,
            )
            for role in watched
        }
        self._coherences: dict[str, deque[tuple[int, float]]] = {
            role: deque(maxlen=256) for role in watched
        }
        self._ppl = {role: Warmup(config.baseline, LENGTH) for role in watched}

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role; roles that were not measured in this record are passed over."""
        for role, movement in self._moves.items():
            movement.see(record, role)
        verdicts = []
        for role, refusal in self._refusals.items():
            if refusal:
                verdicts.append(_none(role, f"does not apply: {refusal}"))
                continue
            verdict = self._verdict(role, record)
            if verdict is not None:
                verdicts.append(verdict)
        return verdicts

    def _refusal(self, role: str) -> str:
        if self._workflow.role(role).slots == 1:
            return "the role has one slot, nothing can be amplified"
        sharing = self._workflow.sharing(role)
        if sharing:
            return f"the policy is shared with {', '.join(sharing)}, see sp_role_capture"
        if not self._singles:
            return "no role without multiplicity to compare with"
        return ""

    def _verdict(self, role: str, record: StepRecord) -> Verdict | None:
        kappa = slot_coherence(record, self._workflow.policy_of(role), role)
        if kappa is not None:
            self._coherences[role].append((record.step, kappa))
        ppl = measured(record.mean(role, "ppl"))
        self._ppl[role].see(ppl)
        mine = self._moves[role]
        source = mine.source
        if not source:
            return _none(role, f"needs {_UPDATE_NEED}", _UPDATE_NEED)
        value = measured(record.mean(role, source))
        warmup = mine.warmups[source]
        if warmup.baseline is None:
            return _none(role, f"needs {more_steps(warmup.lacks)}", more_steps(warmup.lacks))
        if value is None:
            return None
        contrast = self._contrast(role, source)
        if contrast is None:
            need = f"{source} of {' or '.join(self._singles)}"
            return _none(role, f"needs {need} to compare with", need)
        # The median shows the effect, the single record is the evidence: medians are dependent.
        return self._judge(role, record.step, value, contrast, ppl)

    def _contrast(self, role: str, source: str) -> _Contrast | None:
        mine = self._moves[role]
        own, base = mine.now(source), mine.warmups[source].baseline
        others = [
            (now, other)
            for other in self._singles
            if (now := self._moves[other].now(source)) is not None
        ]
        if own is None or base is None or not others:
            return None
        other_now, other = min(others)
        its = self._moves[other].warmups[source].baseline
        return _Contrast(source, own, base, other, other_now, its.typical if its else None)

    def _judge(
        self, role: str, step: int, value: float, contrast: _Contrast, ppl: float | None
    ) -> Verdict:
        settings, alarm = self._settings, self._alarms[role]
        floor = settings.floor * SOURCES[contrast.source]
        own_base = contrast.baseline.typical
        large = max(settings.drift_ratio * own_base, floor)
        moving = contrast.own >= large
        # Below floor / contrast the other role cannot hide a drift that just reaches the floor.
        still = floor / max(settings.contrast, 1.0)
        calm = max(settings.drift_ratio * (contrast.other_base or 0.0), still)
        threshold = max(large, settings.contrast * contrast.other_now)
        alone = contrast.own >= threshold and contrast.other_now < calm
        drifting = alarm.see(
            step,
            contrast.baseline.z(value),
            least=contrast.baseline.distance(large / own_base),
            effect=moving and alone,
            clean=not moving,
        )
        state: State = "drift" if drifting else "watch" if moving else "ok"
        onset = alarm.cusum.onset if state != "ok" else None
        reason = _movement(role, contrast, onset)
        if state == "watch":
            reason += "; " + _short_of_drift(contrast, alone, alarm, settings)
        finding, needs = "", tuple[str, ...]()
        if drifting:
            reason += self._ppl_growth(role, ppl)
            finding, mechanism, needs = self._mechanism(role, onset or step)
            reason += f"; {mechanism}"
        return Verdict(
            detector=NAME,
            role=role,
            state=state,
            finding=finding,
            statistic=contrast.source,
            value=contrast.own,
            threshold=threshold,
            baseline=own_base,
            onset=onset,
            reason=reason,
            needs=needs,
            evidence=alarm.cusum.value,
            chance=chance_of(settings.false_alarms, alarm.cusum.decision),
        )

    def _mechanism(self, role: str, onset: int) -> tuple[str, str, tuple[str, ...]]:
        """The finding that the slot gradients since ``onset`` support, why, and what is missing."""
        slots = self._workflow.role(role).slots
        during = [kappa for step, kappa in self._coherences[role] if step >= onset]
        if len(during) < _ENOUGH_GRAMS:
            counted = f"measured in {len(during)} of {_ENOUGH_GRAMS} steps" if during else "missing"
            why = (
                f"slot gradients {counted}, so the mechanism of {NAME} was not measured "
                "and the name is not earned"
            )
            return ROLE_DRIFT, why, (f"the gradients of {role}'s slots",)
        kappa = median(during)
        numbers = f"(kappa {kappa:.2f}; 1 = unrelated, {math.sqrt(slots):.2f} = identical)"
        if kappa < self._settings.coherence:
            return ROLE_DRIFT, f"slot gradients are not coherent {numbers}: not {NAME}", ()
        return NAME, f"slot gradients are coherent {numbers}", ()

    def _ppl_growth(self, role: str, ppl: float | None) -> str:
        base = self._ppl[role].baseline
        if ppl is None or base is None:
            return ""
        return f"; perplexity {base.typical:.3g} -> {ppl:.3g}"


def slot_coherence(record: StepRecord, policy: str, role: str) -> float | None:
    """Coherence of the gradients of a role's slots, ``|sum g_i| / (sqrt(N) rms |g_i|)``.

    1 for unrelated gradients, ``sqrt(N)`` for identical ones, 0 if they cancel.

    Args:
        record: A record; its Gram matrices have labels ``role/slot``.
        policy: The role's policy.
        role: A role with at least two slots.

    Returns:
        None if fewer than two slots were measured or their gradients vanish.
    """
    for gram in record.gradients:
        rows = [i for i, label in enumerate(gram.labels) if label.startswith(f"{role}/")]
        if gram.policy != policy or len(rows) < 2:
            continue
        trace = math.fsum(gram.products[i][i] for i in rows)
        total = math.fsum(gram.products[i][j] for i in rows for j in rows)
        # rms^2 = trace / N, so N rms^2 = trace: the number of slots cancels.
        if math.isfinite(trace) and math.isfinite(total) and trace > 0:
            return math.sqrt(max(total, 0.0) / trace)
    return None


def _movement(role: str, contrast: _Contrast, onset: int | None) -> str:
    since = f" since step {onset}" if onset is not None else ""
    base = contrast.baseline.typical
    growth = contrast.own / base
    before = "" if contrast.other_base is None else f"{contrast.other_base:.2g} -> "
    return (
        f"{role} moves x{growth:.1f} per step{since} ({contrast.source} {base:.2g} -> "
        f"{contrast.own:.2g}); {contrast.other} {before}{contrast.other_now:.2g}"
    )


def _short_of_drift(
    contrast: _Contrast, alone: bool, alarm: Alarm, settings: GradientAmplificationConfig
) -> str:
    """Which condition of drift does not hold, for a role that is only watched."""
    if not alone:
        return f"{contrast.other} moves too, so multiplicity is not what sets {NAME} off"
    if not alarm.cusum.complete:
        return f"evidence {alarm.cusum.value:.1f} of {alarm.cusum.decision:.1f}"
    return f"in {alarm.persisted} of {settings.patience} records in a row"


def _none(role: str, reason: str, need: str = "") -> Verdict:
    return Verdict(NAME, role, "no verdict", reason=reason, needs=(need,) if need else ())
