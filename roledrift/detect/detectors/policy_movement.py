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
from collections.abc import Iterator, Sequence
from statistics import fmean, stdev

from roledrift.detect.abstaining import waiting
from roledrift.detect.by_problem import by_problem
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.board import RAISED
from roledrift.detect.evidence.distance import Distance
from roledrift.detect.evidence.learning_rate import LearningRates
from roledrift.detect.evidence.scales import RATIOS
from roledrift.detect.evidence.streams import Stream, StreamState
from roledrift.detect.remedies import KL_ANCHOR, LOWER_RATE, SLOT_RATE, SLOT_WEIGHT
from roledrift.detect.sources import BENCHMARK, SPURIOUS, TRPO, WORKFLOWS
from roledrift.detect.units import mean_of, stat_of
from roledrift.judgement import Severity, Verdict
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE
from roledrift.workflow import Workflow

NAME = "policy_movement"
NEED = "update.k3 (re-score a few rows after the optimizer step)"
_BAND = math.log(1.3)
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


class _Movement:
    """Reads how far each role has moved per unit of learning rate; None if not measured."""

    def __init__(self, rates: LearningRates) -> None:
        self._rates = rates
        self._distance = Distance(_NOTHING)

    def of(self, record: StepRecord, role: str) -> float | None:
        """How far one role has moved."""
        log = self._distance.log(role, self._parts(record, role))
        return None if log is None else math.exp(log) / self._rates.unit(role)

    def together(self, roles: Sequence[str], record: StepRecord) -> float | None:
        """The geometric mean over roles, or what a log says of all roles together."""
        values = [self.of(record, role) for role in roles]
        logs = [math.log(max(value, _NOTHING)) for value in values if value is not None]
        if logs:
            return math.exp(fmean(logs)) if len(logs) == len(values) else None
        log = self._distance.log(EVERYONE, self._parts(record, EVERYONE))
        return None if log is None else math.exp(log) / self._rates.unit(roles[0])

    def _parts(self, record: StepRecord, role: str) -> dict[str, float]:
        for name in _SOURCES:
            value = mean_of(record, role, name)
            # chi2 is an estimate that may be negative; then rollout.k3, never negative, stands in.
            if value is None or not math.isfinite(value) or value < 0:
                continue
            if name == "rollout.chi2" and not self._distance.begun(role) and value <= 0:
                continue
            parts = {name: math.sqrt(value)}
            return parts | _further(record, role) if name == _SOURCES[0] else parts
        return {}


def _further(record: StepRecord, role: str) -> dict[str, float]:
    measured = {}
    for name, attribute in _PARTS:
        stat = stat_of(record, role, name)
        value = None if stat is None else getattr(stat, attribute)
        if value is not None and math.isfinite(value):
            measured[name] = float(value)
    return measured


class _PolicyMovement:
    def __init__(self, context: Context) -> None:
        self._workflow = workflow = context.workflow
        self._course, self._rates = context.course, context.board.rates
        moved, roles = _Movement(self._rates), workflow.role_names
        stream = Stream(NAME, RATIOS, 1, _BAND, 0.3, 0.2, 0.1, moved.of, moves=True)
        self._roles = {role: context.board.watch(role, stream) for role in roles}
        self._together: StreamState | None = None
        if len(roles) > 1:

            def read(record: StepRecord, _: str) -> float | None:
                return moved.together(roles, record)

            pooled = Stream(NAME, RATIOS, 1, _BAND, 0.25, 0.15, 0.1, read, moves=True)
            self._together = context.board.watch(EVERYONE, pooled)
        self._updates: dict[str, float] = {}
        self._early: dict[str, list[float]] = {role: [] for role in roles}
        self._slots = {
            role: _Slots(workflow, role) for role in roles if not refusal(workflow, role)
        }

    def update(self, record: StepRecord) -> Iterator[Verdict | None]:
        for role, state in self._roles.items():
            if state.step == record.step and len(self._early[role]) < _EARLY:
                self._early[role].append(state.now)
            updates = record.mean(role, "updates")
            if updates is not None:
                self._updates[role] = updates
        for slots in self._slots.values():
            slots.observe(record)
        for role, state in self._roles.items():
            if state.judged:
                yield self._of_role(role, state)
            elif not state.known and (state.seen or not self._aggregate):
                yield waiting(NAME, role, state.lacking(NEED))
        if self._together is not None and self._together.judged:
            yield self._of_all(self._together)

    def _of_role(self, role: str, state: StreamState) -> Verdict:
        reason = f"its policy moves {state.ratio:.3g} times as far per iteration as at the start"
        finding = ""
        if state.complete:
            finding, why = self._named(role, state)
            reason += why
        elif state.leaning:
            reason += f"; evidence {state.evidence:.1f}, {state.needed:.1f} needed"
        return self._verdict(state, finding, reason, (role,), state.leaning)

    @property
    def _aggregate(self) -> bool:
        """Whether it is only known of all roles together."""
        seen = any(state.seen for state in self._roles.values())
        return self._together is not None and self._together.seen and not seen

    def _of_all(self, state: StreamState) -> Verdict:
        leaning = sum(other.leaning for other in self._roles.values())
        every = state.complete and (leaning >= 2 or self._aggregate)
        reason = f"all policies together move {state.ratio:.3g} times as far as at the start"
        finding = "policy_drift" if every else ""
        return self._verdict(state, finding, reason, tuple(self._roles), state.complete)

    def _verdict(
        self, state: StreamState, finding: str, reason: str, roles: Sequence[str], watch: bool
    ) -> Verdict:
        raised = max(self._rates.raised(name) for name in roles)
        unit = self._rates.unit(state.role)
        cause = f"the learning rate was raised by a factor of {raised:.3g}"
        return state.verdict(
            NAME,
            f"{reason}; {self._course}",
            finding,
            self._severity(state, roles, raised),
            watch=watch,
            value=state.now * unit,
            baseline=state.typical * unit,
            cause=cause if finding and raised > RAISED else "",
        )

    def _severity(self, state: StreamState, roles: Sequence[str], raised: float) -> Severity:
        """Failing where the run is about to lose what it has: far off, and nothing gained by it."""
        if state.sick_start or self._course.losing:
            return "failing"
        if not self._rates.known and all(self._ramped(name) for name in roles):
            return "suspicious"  # A warm-up of the learning rate, which was not recorded, looks so.
        all_move = self._together is not None and self._together.complete
        if state.role != EVERYONE and self._workflow.sharing(state.role) and not all_move:
            return "suspicious"  # One role's rows; the policy that it shares has not moved off.
        hot = raised >= RAISED or not self._course.improving
        return "failing" if state.ratio >= (_FAILING if hot else _RUNAWAY) else "suspicious"

    def _ramped(self, role: str) -> bool:
        """Whether a role moved ever farther in the first records, or they are not all there."""
        early, half = self._early[role], _EARLY // 2
        return len(early) < _EARLY or fmean(early[half:]) >= _RAMP * fmean(early[:half])

    def _named(self, role: str, state: StreamState) -> tuple[str, str]:
        """The finding, and what speaks for and against the paper's name."""
        slots = self._slots.get(role)
        steps = self._steps(role)
        if slots is None or self._rates.raised(role) >= RAISED:
            return "role_drift", steps
        others = [other for name, other in self._roles.items() if name != role and other.known]
        still = [
            other for other in others if not other.leaning and state.ratio >= _ALONE * other.ratio
        ]
        if not still:
            return "role_drift", f"{steps}; the other roles move too"
        held, text = slots.mechanism(state.onset or 0)
        own = self._updates.get(role, 1.0)
        most = max((self._updates.get(other.role, own) for other in still), default=own)
        if held and own <= most:
            return "gradient_amplification", f"{steps}; {text}"
        return "role_drift", f"{steps}; {text}"

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

    def observe(self, record: StepRecord) -> None:
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
    from scipy.special import stdtrit  # scipy.stats is slower by far, to import and to call

    n = len(values)
    quantile = -float(stdtrit(n - 1, 0.05 * first / (n * (n + 1))))
    return fmean(values) - quantile * stdev(values) / math.sqrt(n)


def refusal(workflow: Workflow, role: str) -> str:
    """Why slots of a role cannot be amplified; empty if they can."""
    if workflow.role(role).slots == 1:
        return "the role has one slot"
    if workflow.sharing(role):
        return "the policy is shared"
    return "" if any(role.slots == 1 for role in workflow.roles) else "all roles have several slots"


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
            (f"{TRPO}: the step of a policy", WORKFLOWS, BENCHMARK),
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
            (f"{TRPO}: the step of a policy", SPURIOUS, BENCHMARK),
        ),
        Finding(
            "gradient_amplification",
            "{who} has been over-trained {ratio:.1f} times through its slots since step {onset}",
            "One role with several slots over-trains: its slots agree on the same problems more "
            "than on different ones, and the other roles stay.",
            "movement",
            "failing",
            (SLOT_WEIGHT, SLOT_RATE, KL_ANCHOR),
            (WORKFLOWS, "the control by problem: docs/role_gradients.md"),
        ),
    ),
    make=_PolicyMovement,
    reads=(*_SOURCES, *(name for name, _ in _PARTS), "updates"),
    needs=(NEED,),
)
