"""``entropy_collapse``: a role has become sure of itself without having become better.

Every run that learns lowers its entropy, often to a fifth, and ever more of its advantage groups
have equal rewards. So neither is anything by itself. They are a collapse if next to nothing is left
of the entropy and nothing was gained: accuracy has fallen, or it stands still while the groups stop
teaching.

``echo_trap`` is the form that RAGEN describes in multi-turn training (arXiv 2504.20073): rewards
within groups become alike, the entropy falls, and then gradient norms spike, while nothing is
gained. The opposite, an entropy that doubles and buys nothing, is ``entropy_explosion``.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from statistics import median

from roledrift.detect.abstaining import Presence, waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import RATIOS, SHARES
from roledrift.detect.evidence.streak import Streak
from roledrift.detect.evidence.streams import Stream, StreamState
from roledrift.detect.remedies import KL_ANCHOR, LOWER_RATE
from roledrift.detect.sources import BENCHMARK, CUI, DAPO, RAGEN, SPURIOUS
from roledrift.detect.units import mean_of, reader, units
from roledrift.gram import total_norm
from roledrift.judgement import Verdict
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE

NAME = "entropy_collapse"
EXPLOSION = "entropy_explosion"
ECHO = "echo_trap"
NEED = "entropy"

LEFT = 0.25
"""Share of its start that is left of a collapsed entropy."""

_RISEN = 2.0
_SOLVED = 0.9
"""Accuracy from which on there is nothing left to gain."""

_SPIKE = 4.0
"""Times the usual gradient norm that is a spike."""

_DIP = 4
"""Records in a row that must be below the best before a fall is one: batches differ."""

_WINDOW = 16
_USUAL = 8


def _entropy(record: StepRecord, role: str) -> float | None:
    value = mean_of(record, role, "entropy")
    return value if value is not None and value >= 0 else None


FALL = Stream("entropy", RATIOS, -1, math.log(2), 0.15, 0.08, 0.3, _entropy)
RISE = Stream("entropy", RATIOS, 1, math.log(1.5), 0.15, 0.08, 0.3, _entropy)
IDLE = Stream("zero_variance", SHARES, 1, 0.15, 0.15, 0.05, 0.2, reader("zero_variance"))


class _Spikes:
    """Gradient norms of a role's policy that stand out, for as long as they count."""

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._norms: deque[tuple[int, float]] = deque(maxlen=2 * _WINDOW)

    def observe(self, record: StepRecord, role: str) -> None:
        norm = gradient_norm(record, self._policy, role)
        if norm is not None and math.isfinite(norm) and norm > 0:
            self._norms.append((record.step, norm))

    @property
    def largest(self) -> tuple[int, float] | None:
        """Step and size, in usual norms, of the largest spike within the window."""
        if len(self._norms) < _USUAL:
            return None
        usual = median(norm for _, norm in self._norms)
        step, norm = max(list(self._norms)[-_WINDOW:], key=lambda pair: pair[1])
        return (step, norm / usual) if norm >= _SPIKE * usual else None


class _EntropyCollapse:
    def __init__(self, context: Context) -> None:
        workflow, watch = context.workflow, context.board.watch
        self._course = context.course
        roles = units(workflow)
        self._falls = {role: watch(role, FALL) for role in roles}
        self._rises = {role: watch(role, RISE) for role in roles}
        self._idle = {role: watch(role, IDLE) for role in roles}
        policies = {role: workflow.policy_of(role) for role in workflow.role_names}
        self._spikes = {role: _Spikes(policies.get(role, "")) for role in roles}
        self._presence = Presence(NAME, NEED)
        self._fallen = Streak()

    def update(self, record: StepRecord) -> Iterator[Verdict | None]:
        self._fallen.observe(record.step, self._course.direction == "fell")
        for role, fall in self._falls.items():
            self._spikes[role].observe(record, role)
            measured = fall.seen and fall.step == record.step
            if not fall.seen and (role == EVERYONE or self._together):
                continue
            withheld = self._presence.observe(role, record.step, measured)
            if measured:
                judged = fall.judged
                yield self._judge(role) if judged else waiting(NAME, role, fall.lacking(NEED))
            else:
                yield withheld

    @property
    def _together(self) -> bool:
        """Whether the entropy is known of all roles together."""
        return EVERYONE in self._falls and self._falls[EVERYONE].seen

    def _judge(self, role: str) -> Verdict:
        fall, rise = self._falls[role], self._rises[role]
        finding, watch, why = self._finding(role, fall, rise)
        judged = rise if rise.evidence > fall.evidence else fall
        return judged.verdict(
            NAME,
            f"its entropy is {judged.ratio:.0%} of that at the start ({judged.typical:.3g} -> "
            f"{judged.now:.3g} nats per token){why}; {self._course}",
            finding,
            self._course.severity,
            watch=watch,
            needs=("accuracy or reward",) if self._course.direction == "unknown" else (),
        )

    def _finding(self, role: str, fall: StreamState, rise: StreamState) -> tuple[str, bool, str]:
        """Finding, whether it is watched, and the evidence beside the entropy itself."""
        course, idle = self._course.direction, self._idle[role]
        if course in ("rose", "unknown") or self._solved or 0 < self._fallen.n < _DIP:
            return "", False, ""
        if rise.complete and rise.ratio >= _RISEN:
            return (EXPLOSION if course == "fell" else ""), True, ""
        why = ""
        if idle.seen:
            why = f"; {idle.now:.0%} of its groups have equal rewards ({idle.typical:.0%} before)"
        spike = self._spikes[role].largest
        if fall.complete and idle.complete and spike is not None:
            why += f"; its gradient norm was {spike[1]:.1f} times the usual at step {spike[0]}"
            return ECHO, True, why
        low = fall.complete and fall.ratio <= LEFT
        collapsed = low and (course == "fell" or idle.complete)
        return (NAME if collapsed else ""), fall.complete, why

    @property
    def _solved(self) -> bool:
        return self._course.source == "accuracy" and self._course.now >= _SOLVED


def gradient_norm(record: StepRecord, policy: str, role: str) -> float | None:
    """The norm of a policy's gradient, from whoever has measured it."""
    for gram in record.gradients:
        if gram.policy == policy:
            return total_norm(gram)
    named = record.totals.get(f"grad_norm/{policy}", record.mean(role, "grad_norm"))
    return record.totals.get("grad_norm") if named is None else named


CARD = Card(
    name=NAME,
    about=(
        "Watches each role's entropy against its own start, and whether accuracy has risen "
        "meanwhile: entropy falls in every run that learns."
    ),
    findings=(
        Finding(
            NAME,
            "The entropy of {the} has fallen to {ratio:.0%} without a gain since step {onset}",
            "A role's entropy has collapsed without a gain in accuracy.",
            "outcome",
            "suspicious",
            (
                "raise the sampling temperature or add an entropy bonus for {role}",
                "leave out groups with equal rewards and use more and other prompts",
                LOWER_RATE,
                KL_ANCHOR,
            ),
            (CUI, f"{DAPO}: clip-higher, dynamic sampling", BENCHMARK),
        ),
        Finding(
            ECHO,
            "{who} has been in an echo trap since step {onset}",
            "Rewards within groups have become alike, the entropy has fallen and a gradient norm "
            "has spiked, while nothing was gained (RAGEN's echo trap).",
            "outcome",
            "suspicious",
            (
                "keep the groups whose rewards differ most and leave out those with equal rewards",
                "clip the gradient, and make fewer updates per rollout",
                LOWER_RATE,
            ),
            (RAGEN,),
        ),
        Finding(
            EXPLOSION,
            "The entropy of {the} has risen by a factor of {ratio:.1f} since step {onset}",
            "A role's responses have become more random while accuracy fell.",
            "outcome",
            "failing",
            (
                LOWER_RATE,
                "check the rewards: noisy ones make every policy walk at random",
                KL_ANCHOR,
            ),
            (SPURIOUS, BENCHMARK),
        ),
    ),
    make=_EntropyCollapse,
    reads=("entropy", "zero_variance", "accuracy"),
    needs=(NEED,),
    order=6,
)
