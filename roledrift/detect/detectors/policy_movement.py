"""``policy_movement``: a role's policy moves farther per iteration than it did.

How far is the geometric mean of four distances between the policy before and after the iteration's
optimizer steps, on the same rows: ``sqrt(k3)``, the standard deviation and the mean size of the
change of log-perplexity, and the largest change of a token's log-probability. All are in proportion
to the step, so their mean is, and it is less noisy than any of them. It is compared per unit of
learning rate during a warm-up (:class:`~roledrift.detect.evidence.learning_rate.LearningRates`).

The paper's account of ``gradient_amplification`` is that N slots that earn the same advantage push
one set of parameters N times in one direction. Under Adam with mean losses that cannot be, and
coherence of slots is a gauge of signal-to-noise that a random split of rows has too. So the name is
given only if the role moves alone, farther than its optimizer steps explain, and its slots agree on
the same problems more than on different ones. Otherwise the finding is ``role_drift``.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from statistics import fmean, stdev

from roledrift.detect.abstaining import no_verdict, waiting
from roledrift.detect.by_problem import by_problem
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.board import RAISED
from roledrift.detect.evidence.learning_rate import LearningRates
from roledrift.detect.evidence.scales import RATIOS
from roledrift.detect.evidence.streams import Stream, StreamState
from roledrift.detect.remedies import COHERENCE, KL_ANCHOR, LOWER_RATE, SLOT_RATE, SLOT_WEIGHT
from roledrift.judgement import Severity, State, Verdict
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE
from roledrift.workflow import Workflow

NAME = "policy_movement"
NEED = "update.k3 (re-score a few rows after the optimizer step)"
_FAILING = 2.0
"""Times the usual step from which on a run that is not improving is about to lose what it has."""

_RUNAWAY = 6.0
"""The same for a run that is improving."""

_EARLY = 10
_RAMP = 1.5
"""Times by which the second five of the first ten records exceed the first five in a warm-up."""

_ALONE = 2.0
_EXCESS = 0.1
_CONTROLS = 4
_NOTHING = 1e-6

_PARTS = (
    ("update.log_ppl_diff", "sd"),
    ("update.log_ppl_abs_diff", "mean"),
    ("update.peak", "mean"),
)
_SOURCES = ("update.k3", "old.k3", "rollout.k3", "rollout.chi2")


class _Distances:
    """Reads how far each role has moved, always from the same statistics."""

    def __init__(self, rates: LearningRates) -> None:
        self._rates = rates
        self._chosen: dict[str, tuple[str, ...]] = {}

    def read(self, record: StepRecord, role: str) -> float | None:
        """Geometric mean of the distances per unit of learning rate; None if not measured."""
        parts = self._parts(record, role)
        chosen = self._chosen.get(role)
        if chosen is None:
            if not parts:
                return None
            chosen = self._chosen[role] = tuple(parts)
        if any(name not in parts for name in chosen):
            return None
        logs = [math.log(max(parts[name], _NOTHING)) for name in chosen]
        return math.exp(fmean(logs)) / self._rates.unit(role)

    def source(self, role: str) -> str:
        """The leading statistic that is read for ``role``."""
        return self._chosen.get(role, (_SOURCES[0],))[0]

    def _parts(self, record: StepRecord, role: str) -> dict[str, float]:
        for name in _SOURCES:
            value = record.mean(role, name)
            # chi2 is an estimate that may be negative; then rollout.k3, never negative, stands in.
            if value is None or not math.isfinite(value) or value < 0:
                continue
            if name == "rollout.chi2" and role not in self._chosen and value <= 0:
                continue
            parts = {name: math.sqrt(value)}
            if name == _SOURCES[0]:
                parts |= _further(record, role)
            return parts
        return {}


def _further(record: StepRecord, role: str) -> dict[str, float]:
    found = {}
    for name, attribute in _PARTS:
        stat = record.stat(role, name)
        value = None if stat is None else getattr(stat, attribute)
        if value is not None and math.isfinite(value):
            found[name] = float(value)
    return found


def stream(read: Callable[[StepRecord, str], float | None], *, pooled: bool = False) -> Stream:
    """The stream of a role's movement, or of the mean over roles."""
    if pooled:
        return Stream(NAME, RATIOS, 1, math.log(1.3), 0.25, 0.15, 0.1, read, moves=True)
    return Stream(NAME, RATIOS, 1, math.log(1.3), 0.3, 0.2, 0.1, read, moves=True)


class PolicyMovement:
    """Watches how far every role's policy moves, and all of them together."""

    name = NAME

    def __init__(self, context: Context) -> None:
        self._workflow = workflow = context.workflow
        self._course = context.course
        self._rates = context.board.rates
        self._distances = _Distances(self._rates)
        watch = context.board.watch
        one = stream(self._distances.read)
        self._roles = {role: watch(role, one) for role in workflow.role_names}
        self._together: StreamState | None = None
        if len(workflow.roles) > 1:
            self._together = watch(EVERYONE, stream(self._mean, pooled=True))
        self._updates: dict[str, float] = {}
        self._early: dict[str, list[float]] = {role: [] for role in workflow.role_names}
        self._slots = {
            role: _Slots(workflow, role)
            for role in workflow.role_names
            if not refusal(workflow, role)
        }

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role, and one for all roles together."""
        for role, state in self._roles.items():
            if state.step == record.step and len(self._early[role]) < _EARLY:
                self._early[role].append(state.now)
            updates = record.mean(role, "updates")
            if updates is not None:
                self._updates[role] = updates
        for slots in self._slots.values():
            slots.see(record)
        verdicts = [self._verdict(role, state) for role, state in self._roles.items()]
        if self._together is not None:
            verdicts.append(self._all(self._together))
        return [one for one in verdicts if one is not None]

    def _mean(self, record: StepRecord, _: str) -> float | None:
        values = [self._distances.read(record, role) for role in self._workflow.role_names]
        logs = [math.log(max(one, _NOTHING)) for one in values if one is not None]
        return math.exp(fmean(logs)) if len(logs) == len(values) else None

    def _verdict(self, role: str, state: StreamState) -> Verdict | None:
        if not state.seen:
            return waiting(NAME, role, NEED)
        if not state.judged:
            return None if state.known else _waiting(role, state)
        word: State = "drift" if state.complete else "watch" if state.leaning else "ok"
        reason = f"its policy moves {state.ratio:.3g} times as far per iteration as at the start"
        finding, severity = "", None
        if word == "drift":
            finding, why = self._named(role, state)
            severity = self._severity(role, state)
            reason += why
        elif word == "watch":
            reason += f"; evidence {state.evidence:.1f}, {state.needed:.1f} needed"
        return self._say(role, state, word, finding, severity, reason)

    def _say(
        self,
        role: str,
        state: StreamState,
        word: State,
        finding: str,
        severity: Severity | None,
        reason: str,
    ) -> Verdict:
        unit = self._rates.unit(role) if role != EVERYONE else 1.0
        return Verdict(
            detector=NAME,
            role=role,
            state=word,
            finding=finding,
            statistic=NAME,
            value=state.now * unit,
            threshold=None,
            baseline=state.typical * unit,
            onset=state.onset if word != "ok" else None,
            reason=f"{reason}; {self._course}",
            evidence=state.evidence,
            chance=f"against {state.needed:.2f} needed",
            severity=severity,
            cause=self._cause(role) if word == "drift" else "",
        )

    def _all(self, state: StreamState) -> Verdict | None:
        if not state.judged:
            return None
        over = sum(one.leaning for one in self._roles.values())
        every = state.complete and over >= 2
        word: State = "drift" if every else "watch" if state.complete else "ok"
        reason = f"all policies together move {state.ratio:.3g} times as far as at the start"
        return self._say(
            EVERYONE,
            state,
            word,
            "policy_drift" if every else "",
            self._severity(EVERYONE, state) if every else None,
            reason,
        )

    def _severity(self, role: str, state: StreamState) -> Severity:
        """Failing where the run is about to lose what it has: far off, and nothing gained by it."""
        roles = self._workflow.role_names if role == EVERYONE else (role,)
        raised = max(self._rates.raised(one) for one in roles) >= RAISED
        if state.sick_start or self._course.losing:
            return "failing"
        if not self._rates.known and all(self._ramped(one) for one in roles):
            return "suspicious"  # A warm-up of the learning rate, which was not recorded, looks so.
        if role != EVERYONE and self._workflow.sharing(role) and not self._together_moves:
            return "suspicious"  # One role's rows; the policy that it shares has not moved off.
        if state.ratio >= _RUNAWAY:
            return "failing"
        large = state.ratio >= _FAILING and (raised or not self._course.improving)
        return "failing" if large else "suspicious"

    @property
    def _together_moves(self) -> bool:
        return self._together is not None and self._together.complete

    def _ramped(self, role: str) -> bool:
        """Whether a role moved ever farther in the first records, or they are not all there."""
        early, half = self._early[role], _EARLY // 2
        return len(early) < _EARLY or fmean(early[half:]) >= _RAMP * fmean(early[:half])

    def _cause(self, role: str) -> str:
        roles = self._workflow.role_names if role == EVERYONE else (role,)
        raised = max(self._rates.raised(one) for one in roles)
        if raised <= RAISED:
            return ""
        return f"the learning rate was raised by a factor of {raised:.3g}"

    def _named(self, role: str, state: StreamState) -> tuple[str, str]:
        """The finding, and what speaks for and against the paper's name."""
        slots = self._slots.get(role)
        steps = self._steps(role)
        if slots is None or self._rates.raised(role) >= RAISED:
            return "role_drift", steps
        others = [one for name, one in self._roles.items() if name != role and one.known]
        still = [one for one in others if not one.leaning and state.ratio >= _ALONE * one.ratio]
        if not still:
            return "role_drift", f"{steps}; the other roles move too"
        held, told = slots.mechanism(state.onset or 0)
        own = self._updates.get(role, 1.0)
        most = max((self._updates.get(one.role, own) for one in still), default=own)
        if held and own <= most:
            return "gradient_amplification", f"{steps}; {told}"
        return "role_drift", f"{steps}; {told}"

    def _steps(self, role: str) -> str:
        own = self._updates.get(role)
        if not own or len(self._updates) < 2:
            return ""
        others = ", ".join(
            f"{name} {count:g}" for name, count in self._updates.items() if name != role
        )
        return f"; optimizer steps per iteration: {role} {own:g}, {others}"


class _Slots:
    """Whether a role's slots agree on a problem beyond what they do across problems."""

    def __init__(self, workflow: Workflow, role: str) -> None:
        self._policy, self._role = workflow.policy_of(role), role
        self._seen: deque[tuple[int, float]] = deque(maxlen=256)

    def see(self, record: StepRecord) -> None:
        for gram in record.gradients:
            pairs = by_problem(gram, self._role) if gram.policy == self._policy else None
            if pairs is not None:
                self._seen.append((record.step, pairs.excess))

    def mechanism(self, onset: int) -> tuple[bool, str]:
        """Whether the mechanism is there since ``onset``, and the numbers."""
        during = [excess for step, excess in self._seen if step >= onset]
        if len(during) < _CONTROLS:
            return False, "its slots' gradients were not measured often enough to name a mechanism"
        mean, low = fmean(during), lower_bound(during, _CONTROLS)
        held = mean >= _EXCESS and low > 0
        verb = "agree" if held else "do not agree"
        return held, (
            f"its slots {verb} on a problem beyond what they do across problems "
            f"(cosine {mean:+.2f}, 95 % above {low:+.2f}, {len(during)} records)"
        )


def lower_bound(values: Sequence[float], first: int) -> float:
    """Lower 95 % confidence bound of a mean that is looked at anew with every value.

    ``mean - t s / sqrt(n)`` with Student's t of n - 1 degrees of freedom at the level
    ``0.05 first / (n (n + 1))``. These levels add up to 0.05 over all n from ``first`` on, so the
    chance that the bound is ever above the mean is at most that, however often one looks.

    Args:
        values: Independent; records of a gradient are, they hold other problems.
        first: Number of values at the first look.
    """
    from scipy.stats import t

    n = len(values)
    quantile = float(t.isf(0.05 * first / (n * (n + 1)), n - 1))
    return fmean(values) - quantile * stdev(values) / math.sqrt(n)


def refusal(workflow: Workflow, role: str) -> str:
    """Why slots of a role cannot be amplified; empty if they can."""
    if workflow.role(role).slots == 1:
        return "the role has one slot"
    if workflow.sharing(role):
        return "the policy is shared"
    return "" if any(one.slots == 1 for one in workflow.roles) else "all roles have several slots"


def _waiting(role: str, state: StreamState) -> Verdict:
    lacks = state.start.lacks
    return no_verdict(NAME, role, f"needs {lacks} more steps", f"{lacks} more steps")


CARD = Card(
    name=NAME,
    about=(
        "Watches how far each role's policy moves per iteration, per unit of learning rate while "
        "that is warming up, and compares it with the start of the run."
    ),
    findings=(
        Finding(
            "role_drift",
            "{who} has moved {ratio:.1f} times as far per step since step {onset}",
            "The policy of one role moves farther per iteration than at the start of the run.",
            "movement",
            "failing",
            (
                LOWER_RATE,
                KL_ANCHOR,
                "count mini-batches in episodes, so that every role makes as many optimizer steps",
                "rule out noisy credit: a single role with random rewards drifts alike",
            ),
        ),
        Finding(
            "policy_drift",
            "All policies have moved {ratio:.1f} times as far per step since step {onset}",
            "The policies of all roles move farther per iteration than at the start of the run.",
            "movement",
            "failing",
            (
                LOWER_RATE,
                "check the rewards: noisy ones make every policy walk at random",
                KL_ANCHOR,
            ),
        ),
        Finding(
            "gradient_amplification",
            "{who} has been over-trained {ratio:.1f} times through its slots since step {onset}",
            "One role with several slots over-trains: its slots agree on the same problems more "
            "than on different ones, and the other roles stay.",
            "movement",
            "failing",
            (SLOT_WEIGHT, SLOT_RATE, KL_ANCHOR, COHERENCE),
        ),
    ),
    make=PolicyMovement,
    reads=(*_SOURCES, *(name for name, _ in _PARTS), "updates"),
    needs=(NEED,),
)
"""How far policies move."""
