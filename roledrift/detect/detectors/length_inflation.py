"""``length_inflation``: a role's responses have become longer, and not because that pays off.

A role that begins to solve the task again writes longer responses before anything else shows. What
counts is a lasting rise of the mean length beyond 20 %, and beyond that of the other roles: if
every role grows alike, the task or the reward asks for longer responses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from roledrift.detect.abstaining import waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import COUNTS
from roledrift.detect.evidence.streams import Stream, StreamState
from roledrift.detect.remedies import AGENT_WISE, CAP_LENGTH, EQUAL_WEIGHT, KL_ANCHOR
from roledrift.judgement import Severity, State, Verdict
from roledrift.records import LENGTH_UNIT, StepRecord

NAME = "length_inflation"

LENGTH = Stream("length", COUNTS, 1, math.log(1.2), 0.07, 0.04, 0.1, base=True)

_ALIKE = math.log(1.25)
"""Growth beyond that of the other roles, on the log scale, that is a role's own."""

_LEAST_TOKENS = 1.0
_PATIENCE = 3


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of ``length_inflation``.

    Attributes:
        roles: Roles that are watched. Empty: the terse roles of the workflow, else all roles.
        limit: Mean length in tokens that is too long whatever the start was; 0 for no limit.
    """

    roles: tuple[str, ...] = ()
    limit: float = 0.0


class LengthInflation:
    """Watches the mean length of roles' responses, in tokens or in what the log counts."""

    name = NAME

    def __init__(self, context: Context) -> None:
        self._settings: Settings = context.settings
        self._course = context.course
        workflow = context.workflow
        for role in self._settings.roles:
            workflow.index(role)
        terse = tuple(role.name for role in workflow.roles if role.terse)
        watched = self._settings.roles or terse or workflow.role_names
        self._lengths = {role: context.board.watch(role, LENGTH) for role in workflow.role_names}
        self._watched = watched
        self._over = dict.fromkeys(watched, 0)
        self._judged: set[str] = set()
        self._unit = "tokens"

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per watched role that was measured in this record."""
        verdicts = []
        self._unit = record.labels.get(LENGTH_UNIT, "tokens")
        for role in self._watched:
            state = self._lengths[role]
            if state.judged:
                self._judged.add(role)
                verdicts.append(self._judge(role, record.step, state))
            elif role not in self._judged:
                lacks = state.start.lacks
                need = f"{lacks} more steps" if state.seen else "response lengths"
                verdicts.append(waiting(NAME, role, need))
        return verdicts

    def _judge(self, role: str, step: int, state: StreamState) -> Verdict:
        # The limit is in tokens, and says nothing about characters.
        limit = self._settings.limit if self._unit == "tokens" else 0.0
        self._over[role] = self._over[role] + 1 if 0 < limit <= state.now else 0
        others = [one.change for name, one in self._lengths.items() if name != role and one.judged]
        alike = bool(others) and state.change - median(others) < _ALIKE
        grown = state.complete and state.now - state.typical >= _LEAST_TOKENS
        too_long = self._over[role] >= _PATIENCE
        word: State = "ok"
        if too_long or (grown and not alike):
            word = "drift"
        elif state.leaning:
            word = "watch"
        reason = (
            f"responses are {state.ratio:.2f} times as long as at the start "
            f"({state.typical:.1f} -> {state.now:.1f} {self._unit})"
        )
        if word == "drift" and state.sick_start and state.yardstick is not None:
            reason += f", which is that of {state.yardstick.source}"
        if word == "watch" and grown and alike:
            reason += "; the other roles have grown alike"
        elif word == "watch":
            reason += f"; evidence {state.evidence:.1f}, {state.needed:.1f} needed"
        told = ", ".join(
            f"{name} x{one.ratio:.2f}"
            for name, one in self._lengths.items()
            if name != role and one.known
        )
        reason += f"; other roles: {told}" if told else ""
        return Verdict(
            detector=NAME,
            role=role,
            state=word,
            finding=NAME if word == "drift" else "",
            statistic="length",
            value=state.now,
            threshold=limit or None,
            baseline=state.typical,
            onset=(step if state.onset is None else state.onset) if word != "ok" else None,
            reason=f"{reason}; {self._course}",
            evidence=state.evidence,
            chance=f"against {state.needed:.2f} needed",
            severity=self._severity(too_long) if word == "drift" else None,
        )

    def _severity(self, too_long: bool) -> Severity:
        """Longer responses with rising accuracy are what reasoning models are trained for."""
        if self._course.direction == "fell" or too_long:
            return "failing"
        return "suspicious" if self._course.direction in ("rose", "unknown") else "failing"


CARD = Card(
    name=NAME,
    about=(
        "Watches the mean length of the responses of terse roles (of all roles if none is terse) "
        "for a lasting rise beyond 20 % that the other roles do not share."
    ),
    findings=(
        Finding(
            NAME,
            "{who} has written {ratio:.1f} times as much since step {onset}",
            "A role writes longer responses, and the other roles do not.",
            "text",
            "failing",
            (
                CAP_LENGTH,
                "check that no reward pays {role} for long responses",
                EQUAL_WEIGHT,
                AGENT_WISE,
                KL_ANCHOR,
            ),
        ),
    ),
    make=LengthInflation,
    reads=("length",),
    needs=("response lengths",),
    settings=Settings,
)
"""Response lengths."""
