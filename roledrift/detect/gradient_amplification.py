"""``gradient_amplification``: the role with several slots drifts while the others stay flat.

The paper's account: in an isolated policy, N slots that earn the same advantage push one set of
parameters N times in one direction. The symptom is policy movement of that role alone; the
mechanism is coherence of its slots' gradients. The symptom also has other causes (noisy credit and
a hot learning rate make a single role without any multiplicity collapse alike), so the name is
given only when all of its evidence was measured; with a part of it the finding is ``role_drift``.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

from roledrift.config import Config
from roledrift.detect.baseline import more_steps
from roledrift.detect.by_problem import by_problem
from roledrift.detect.movement import SOURCES, UPDATE_NEED, Moved, Movement
from roledrift.records import State, StepRecord, Verdict
from roledrift.workflow import Workflow

NAME = "gradient_amplification"
ROLE_DRIFT = "role_drift"
"""The lesser finding: the symptom without the mechanism."""

_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class _Contrast:
    """The steadiest role without multiplicity."""

    movement: Movement
    now: float
    base: float | None
    moving: bool

    @property
    def role(self) -> str:
        return self.movement.role


@dataclass(frozen=True, slots=True)
class _Evidence:
    """One thing that the name needs: held, contrary (neither held nor needed), or missing."""

    held: bool
    text: str
    need: str = ""


class GradientAmplification:
    """Watches roles with several slots and a policy of their own.

    The role drifts as :class:`roledrift.detect.movement.Movement` says. If the steadiest role
    without multiplicity moves too, all do, and that is ``policy_drift``. Otherwise the drift is
    called gradient amplification if, and only if: that role is flat, by ``contrast``; the drift is
    more than as many optimizer steps would give it; and the gradients of slots agree on the same
    problems by ``excess`` more than on different ones, with 95 % confidence, over at least
    ``controls`` records since the onset.

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
        self._moves = {
            role: Movement(
                role, settings, baseline=config.baseline, forget_after=config.close_after
            )
            for role in workflow.role_names
        }
        self._refusals = {role: refusal(workflow, role) for role in workflow.role_names}
        self._refused = {
            role: _none(role, f"does not apply: {why}")
            for role, why in self._refusals.items()
            if why
        }
        self._coherences: dict[str, deque[tuple[int, float]]] = {
            role: deque(maxlen=256) for role, why in self._refusals.items() if not why
        }
        self._excesses: dict[str, deque[tuple[int, float]]] = {
            role: deque(maxlen=256) for role in self._coherences
        }

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role; roles that were not measured in this record are passed over."""
        if not self._coherences:
            return list(self._refused.values())
        for movement in self._moves.values():
            movement.see(record)
        verdicts = []
        for role, why in self._refusals.items():
            if why:
                verdicts.append(self._refused[role])
                continue
            self._see_gradients(record, role)
            verdict = self._verdict(role, record)
            if verdict is not None:
                verdicts.append(verdict)
        return verdicts

    def _see_gradients(self, record: StepRecord, role: str) -> None:
        policy = self._workflow.policy_of(role)
        kappa = slot_coherence(record, policy, role)
        if kappa is not None:
            self._coherences[role].append((record.step, kappa))
        for gram in record.gradients:
            pairs = by_problem(gram, role) if gram.policy == policy else None
            if pairs is not None:
                self._excesses[role].append((record.step, pairs.excess))

    def _verdict(self, role: str, record: StepRecord) -> Verdict | None:
        mine = self._moves[role]
        source = mine.source
        if not source:
            return _none(role, f"needs {UPDATE_NEED}", UPDATE_NEED)
        if mine.baseline(source) is None:
            need = more_steps(mine.lacks(source))
            return _none(role, f"needs {need}", need)
        if record.mean(role, source) is None or mine.now is None:
            return None
        other = self._contrast(source)
        if other is None:
            need = f"{source} of {' or '.join(self._singles)}"
            return _none(role, f"needs {need} to compare with", need)
        return self._judge(record.step, mine, mine.now, other)

    def _contrast(self, source: str) -> _Contrast | None:
        others = [
            (now, self._moves[role])
            for role in self._singles
            if (now := self._moves[role].recent(source)) is not None
        ]
        if not others:
            return None
        now, steadiest = min(others, key=lambda pair: pair[0])
        base = steadiest.baseline(source)
        judged = steadiest.now
        moving = judged is not None and judged.source == source and judged.moving
        return _Contrast(steadiest, now, None if base is None else base.typical, moving)

    def _judge(self, step: int, mine: Movement, now: Moved, other: _Contrast) -> Verdict:
        drifting = now.drifting and not other.moving
        state: State = "drift" if drifting else "watch" if now.moving else "ok"
        before = "" if other.base is None else f"{other.base:.2g} -> "
        reason = f"{mine.told(now)}; {other.role} {before}{other.now:.2g}"
        if state == "watch":
            short = f"{other.role} moves too, see policy_drift: multiplicity is not what does it"
            reason += f"; {short if other.moving else mine.short_of_drift(now)}"
        finding, needs = "", tuple[str, ...]()
        if drifting:
            evidence = [
                self._alone(now, other),
                self._steps(mine, now, other),
                self._mechanism(mine.role, now.onset or step),
            ]
            finding = NAME if all(one.held for one in evidence) else ROLE_DRIFT
            needs = tuple(one.need for one in evidence if one.need)
            reason += mine.told_ppl() + _peaks(mine, now.source, other.movement)
            reason += "".join(f"; {one.text}" for one in evidence)
            if finding != NAME:
                reason += _unnamed(evidence)
        return Verdict(
            detector=NAME,
            role=mine.role,
            state=state,
            finding=finding,
            statistic=now.source,
            value=now.own,
            threshold=now.threshold,
            baseline=now.baseline.typical,
            onset=now.onset,
            reason=reason,
            needs=needs,
            evidence=now.evidence,
            chance=now.chance,
        )

    def _alone(self, now: Moved, other: _Contrast) -> _Evidence:
        """Are the roles without multiplicity flat?"""
        settings = self._settings
        # Below floor / contrast the other role cannot hide a drift that just reaches the floor.
        still = settings.floor * SOURCES[now.source] / max(settings.contrast, 1.0)
        calm = other.now < max(settings.drift_ratio * (other.base or 0.0), still)
        if calm and now.own >= settings.contrast * other.now:
            return _Evidence(True, f"{other.role} is flat")
        why = f"{other.role} moves too" if not calm else f"{other.role} moves nearly as far"
        return _Evidence(False, why)

    def _steps(self, mine: Movement, now: Moved, other: _Contrast) -> _Evidence:
        """Is it more than a matched number of optimizer steps would give?

        Independent steps move a policy in proportion to their number u (k3 is a square: a random
        walk), equal ones in proportion to u². The other role is granted u².
        """
        own, its = mine.updates, other.movement.updates
        if not own or not its:
            need = f"the optimizer steps per iteration of {mine.role} and {other.role}"
            return _Evidence(False, "optimizer steps per role not counted", need)
        granted = (own / its) ** 2 * other.now
        told = f"{own:g} optimizer steps against {its:g} would explain {granted:.2g}"
        return _Evidence(now.own > self._settings.matched * granted, told)

    def _mechanism(self, role: str, onset: int) -> _Evidence:
        """Do slots agree on the same problems more than on different ones?"""
        settings = self._settings
        kappas = [kappa for step, kappa in self._coherences[role] if step >= onset]
        during = [excess for step, excess in self._excesses[role] if step >= onset]
        if len(during) < max(settings.controls, 3):
            if not kappas:
                return _Evidence(
                    False, "slot gradients not measured", f"the gradients of {role}'s slots"
                )
            told = (
                f"slot gradients (kappa {fmean(kappas):.2f}; 1 = unrelated, "
                f"{math.sqrt(self._workflow.role(role).slots):.2f} = identical) split by problem "
                f"in {len(during)} of {settings.controls} records"
            )
            return _Evidence(False, told, f"more gradients of {role}'s slots split by problem")
        mean, low = fmean(during), lower_bound(during, max(settings.controls, 3))
        kappa = fmean(kappas) if kappas else 0.0
        held = mean >= settings.excess and low > 0 and kappa >= settings.coherence
        verb = "agree" if held else "do not agree"
        told = (
            f"slot gradients {verb} on a problem beyond what they do across problems (cosine "
            f"{mean:+.2f}, 95 % above {low:+.2f}, {len(during)} records; kappa {kappa:.2f})"
        )
        return _Evidence(held, told)


def refusal(workflow: Workflow, role: str) -> str:
    """Why the detector does not apply to a role; empty if it does."""
    if workflow.role(role).slots == 1:
        return "the role has one slot, nothing can be amplified"
    sharing = workflow.sharing(role)
    if sharing:
        return f"the policy is shared with {', '.join(sharing)}, see sp_role_capture"
    if all(one.slots > 1 for one in workflow.roles):
        return "no role without multiplicity to compare with"
    return ""


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


def lower_bound(values: Sequence[float], first: int) -> float:
    """Lower 95 % confidence bound of a mean that is looked at anew with every value.

    ``mean - t s / sqrt(n)`` with Student's t of n - 1 degrees of freedom at the level
    ``0.05 first / (n (n + 1))``. These levels add up to 0.05 over all n from ``first`` on, so the
    chance that the bound is ever above the mean is at most that, however often one looks. The
    quantile is Hill's expansion about the normal one (Abramowitz & Stegun 26.7.5), within 3 % for
    four values and better for more.

    Args:
        values: Independent; records of a gradient are, they hold other problems.
        first: Number of values at the first look.
    """
    n, nu = len(values), len(values) - 1
    z = NormalDist().inv_cdf(1 - (1 - _CONFIDENCE) * first / (n * (n + 1)))
    t = z + (z**3 + z) / (4 * nu) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * nu**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * nu**3)
    return fmean(values) - t * stdev(values) / math.sqrt(n)


def _peaks(mine: Movement, source: str, other: Movement) -> str:
    """Peak over baseline of the role and of the other, as the paper's table 2 has them."""
    told = []
    for name in (source, "ppl"):
        peak, its = mine.peak(name), other.peak(name)
        if peak is not None and its is not None:
            told.append(f"{name} x{peak:.3g} ({other.role} x{its:.3g})")
    return f"; peak over baseline: {', '.join(told)}" if told else ""


def _unnamed(evidence: Sequence[_Evidence]) -> str:
    against = [one for one in evidence if not one.held and not one.need]
    if against:
        return f"; so it is not {NAME}"
    if evidence[0].held and evidence[-1].need:
        return f"; by its metrics alone like {NAME}, whose mechanism was not measured"
    return f"; so the name {NAME} is not earned"


def _none(role: str, reason: str, need: str = "") -> Verdict:
    return Verdict(NAME, role, "no verdict", reason=reason, needs=(need,) if need else ())
