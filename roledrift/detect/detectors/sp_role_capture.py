"""``sp_role_capture``: under a shared policy one role has begun to write like another.

Between the starts of two roles lies a way (:mod:`roledrift.detect.evidence.words`). A role is
captured if its words have gone along it for good: toward the other role's start, which is the
evidence, and a third of the way to where that role is now or was then, whichever is farther. The
other role may move off, and in captures that arise by themselves it does so first; only one that
comes to meet the role, or both leaving for a third place at once, is no capture.

Rewards that pay one role for length make it write like a longer one as well. That is
``reward_hacking``, so a role whose reward has risen above the other roles' is not called captured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from roledrift.detect.abstaining import Presence, no_verdict, waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.detectors.length_inflation import LENGTH
from roledrift.detect.detectors.reward_hacking import BIAS
from roledrift.detect.evidence.board import BASE
from roledrift.detect.evidence.scales import LINEAR
from roledrift.detect.evidence.start import Yardstick
from roledrift.detect.evidence.streams import Stream, StreamState
from roledrift.detect.evidence.words import STRAIGHT, Writing
from roledrift.detect.length_credit import LengthCredit
from roledrift.detect.remedies import AGENT_WISE, KL_ANCHOR, LOWER_RATE, OWN_POLICY, ROLE_BALANCE
from roledrift.detect.sources import BENCHMARK, DR_MAS, WORKFLOWS
from roledrift.judgement import Verdict
from roledrift.records import LENGTH_UNIT, StepRecord

NAME = "sp_role_capture"
STYLE = "style_drift"
NEED = "texts (kinds of words)"

CAPTURED = 1 / 3
"""Share of the way from which on a role is captured; below it the role is its own again.

The alert closes only after several such records in a row (``alerts.close_after``)."""

_LEAD = 3
"""Steps by which a role must have changed first to be followed to a third place."""

_LEFT = 0.25
"""Distance from its own start, 1 being no word in common, at which a role's style is another."""

_PAID = 0.1
"""Standard deviations of the reward; as in :mod:`~roledrift.detect.detectors.reward_hacking`."""

_CREDIT = 0.1
"""Correlation of advantage and length, at the lower 95 % bound, that pays for length."""

_BAND, _SPREAD, _FLOOR = 0.15, 0.12, 0.04


class _SpRoleCapture:
    def __init__(self, context: Context) -> None:
        workflow, board = context.workflow, context.board
        self._course = context.course
        self._others = {role: workflow.sharing(role) for role in workflow.role_names}
        shared = [role for role, others in self._others.items() if others]
        self._writing = Writing(shared)
        self._ways = {
            role: {other: board.watch(role, self._way(role, other)) for other in self._others[role]}
            for role in shared
        }
        away = Stream("words", LINEAR, 1, 0.1, 0.04, 0.02, 0.3, self._away)
        self._left = {role: board.watch(role, away) for role in shared}
        self._bias = {role: board.watch(role, BIAS) for role in shared}
        self._lengths = {role: board.watch(role, LENGTH) for role in shared}
        self._credit = {role: LengthCredit() for role in shared}
        self._captor: dict[str, str] = {}
        self._paid: set[str] = set()
        self._presence = Presence(NAME, NEED)
        self._begun = False
        self._unit = "tokens"

    def _way(self, role: str, other: str) -> Stream:
        def read(record: StepRecord, _: str) -> float | None:
            return self._writing.share(record, role, other)

        return Stream(f"words toward {other}", LINEAR, 1, _BAND, _SPREAD, _FLOOR, 0.1, read)

    def _away(self, record: StepRecord, role: str) -> float | None:
        return self._writing.away(record, role)

    def update(self, record: StepRecord) -> Iterator[Verdict | None]:
        self._unit = record.labels.get(LENGTH_UNIT, "tokens")
        self._begin(record)
        for role, others in self._others.items():
            if not others:
                why = "does not apply: isolated, the role has a policy of its own"
                yield no_verdict(NAME, role, why)
                continue
            self._credit[role].observe(record, role)
            measured = self._writing.measured(role)
            withheld = self._presence.observe(role, record.step, measured)
            yield self._verdict(role) if measured else withheld

    def _begin(self, record: StepRecord) -> None:
        self._writing.observe(record)
        if not self._begun and self._writing.from_base:
            for ways in self._ways.values():
                for way in ways.values():
                    way.measure_by(Yardstick(0.0, _SPREAD, BASE))
        self._begun = True

    def _verdict(self, role: str) -> Verdict:
        ways = self._ways[role]
        if not any(way.judged for way in ways.values()):
            lacks = max(min((way.start.lacks for way in ways.values()), default=0), 1)
            return waiting(NAME, role, f"{lacks} more steps")
        apart = [other for other in ways if self._writing.apart(role, other)]
        if not apart:
            need = "words that tell the roles apart at the start"
            why = f"needs {need}: {role} and {', '.join(ways)} write alike"
            return no_verdict(NAME, role, why, need)
        left = self._left[role]
        captor = max(apart, key=lambda other: ways[other].change)
        share, straight = ways[captor].now, 1.0
        if left.leaning or role in self._captor or any(ways[other].leaning for other in apart):
            went = {other: self._writing.captured(role, other) for other in apart}
            self._hold(role, went)
            captor = self._captor.get(role) or max(went, key=lambda other: went[other][0])
            share, straight = went[captor]
        way = ways[captor]
        watch, finding, why = False, "", ""
        if role in self._captor and role not in self._paid:
            finding = NAME
        elif role in self._captor:
            watch, why = True, "; its reward has risen above the other roles': reward_hacking"
        elif self._drifted(role, left) and (
            not way.leaning or straight < STRAIGHT or self._meets(role, captor)
        ):
            finding = STYLE
        elif way.leaning and share >= CAPTURED:
            watch, why = True, f"; evidence {way.evidence:.1f}, {way.needed:.1f} needed"
            if self._meets(role, captor):
                why = f"; {captor} has left its own way of writing as much"
        own = finding == STYLE
        judged = left if own or left.evidence > way.evidence else way
        return judged.verdict(
            NAME,
            self._reason(role, captor, share, own=own) + why,
            finding,
            self._course.severity,
            watch=watch,
            statistic="words",
            value=left.now if own else share,
            threshold=_LEFT if own else CAPTURED,
            baseline=0.0,
            toward="" if own else captor,
        )

    def _hold(self, role: str, went: Mapping[str, tuple[float, float]]) -> None:
        """Note which role has captured this one, until its words are its own again."""
        captor, ways = self._captor.get(role), self._ways[role]
        if captor is not None and went.get(captor, (0.0, 0.0))[0] < CAPTURED:
            del self._captor[role]
            self._paid.discard(role)
        elif captor is None:
            captors = [
                other
                for other, (share, straight) in went.items()
                if share >= CAPTURED
                and straight >= STRAIGHT
                and (ways[other].complete or self._left[role].complete)
                and not self._meets(role, other)
            ]
            if captors:
                self._captor[role] = max(captors, key=lambda other: went[other][0])
        if role in self._captor and self._is_paid(role):
            self._paid.add(role)

    def _meets(self, role: str, other: str) -> bool:
        """Whether the other role has come toward this one as much, and not left before."""
        back = self._writing.toward(other, role)
        if back <= min(self._writing.toward(role, other), 1.0) / 2:
            return False
        first, second = self._left[other].onset, self._ways[role][other].onset
        return first is None or second is None or second - first < _LEAD

    def _is_paid(self, role: str) -> bool:
        """Whether rewards pay this role more than the others since its texts change."""
        bias = self._bias[role]
        if not bias.seen or bias.now < _PAID:
            return False
        credit = self._credit[role].lately()
        from_start = bias.typical >= _PAID and credit is not None and credit[1] >= _CREDIT
        return bias.leaning or from_start

    def _drifted(self, role: str, left: StreamState) -> bool:
        lost = self._course.direction in ("level", "fell")
        return lost and left.complete and left.now >= _LEFT and not self._is_paid(role)

    def _reason(self, role: str, captor: str, share: float, *, own: bool) -> str:
        if own:
            text = f"its words differ from its start by {self._left[role].now:.2f} of 1"
        else:
            text = f"its words have gone {share:.2f} of the way to those of {captor}"
        length, bias = self._lengths[role], self._bias[role]
        if length.known:
            text += f"; its responses have {length.typical:.1f} -> {length.now:.1f} {self._unit}"
        if bias.seen and bias.known:
            text += f"; its reward is {bias.now:+.2f} sd from that of all roles"
        return f"{text}; {self._course}"


CARD = Card(
    name=NAME,
    about=(
        "Watches the kinds of words of roles that share a policy: whether one role begins to write "
        "like another, as it was at the start or as it is now."
    ),
    findings=(
        Finding(
            NAME,
            "{who} has written like the {toward} since step {onset}",
            "Under a shared policy a role has taken the way of writing of another role, and its "
            "own reward does not explain it.",
            "text",
            "suspicious",
            (OWN_POLICY, ROLE_BALANCE, AGENT_WISE),
            (WORKFLOWS, DR_MAS, BENCHMARK),
        ),
        Finding(
            STYLE,
            "{who} has written unlike its start since step {onset}",
            "Under a shared policy a role uses other words than at the start, and not those of "
            "another role.",
            "text",
            "suspicious",
            (KL_ANCHOR, LOWER_RATE),
            (WORKFLOWS, BENCHMARK),
        ),
    ),
    make=_SpRoleCapture,
    reads=("words", "length", "reward_bias", "length_credit"),
    needs=(NEED,),
)
