"""``length_inflation``: a role's responses have become longer, and not because that pays off.

A role that begins to solve the task again writes longer responses before anything else shows. What
counts is a lasting rise of the mean length beyond 20 %, and beyond that of the other roles: if
every role grows alike, the task or the reward asks for longer responses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from roledrift.detect.abstaining import waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import COUNTS
from roledrift.detect.evidence.streak import Streak
from roledrift.detect.evidence.streams import Stream, StreamState
from roledrift.detect.remedies import AGENT_WISE, CAP_LENGTH, EQUAL_WEIGHT, KL_ANCHOR
from roledrift.detect.sources import BENCHMARK, DR_GRPO, DR_MAS, SINGHAL
from roledrift.detect.units import reader, units
from roledrift.judgement import Severity, Verdict
from roledrift.records import LENGTH_UNIT, StepRecord
from roledrift.sums import EVERYONE

NAME = "length_inflation"

LENGTH = Stream("length", COUNTS, 1, math.log(1.2), 0.07, 0.04, 0.1, reader("length"), base=True)

_ALIKE = math.log(1.25)
"""Growth beyond that of the other roles, on the log scale, that is a role's own."""

_LEAST_TOKENS = 1.0
_PATIENCE = 3


@dataclass(frozen=True, slots=True)
class LengthSettings:
    """Settings of ``length_inflation``.

    Attributes:
        roles: Roles that are watched. Empty: the terse roles of the workflow, else all roles.
        limit: Mean length in tokens that is too long whatever the start was; 0 for no limit.
    """

    roles: tuple[str, ...] = ()
    limit: float = 0.0


class _LengthInflation:
    def __init__(self, context: Context) -> None:
        workflow = context.workflow
        self._settings: LengthSettings = context.settings
        self._course = context.course
        for role in self._settings.roles:
            workflow.index(role)
        terse = tuple(role.name for role in workflow.roles if role.terse)
        watched = self._settings.roles or terse or workflow.role_names
        # Of several roles, all together too, where a log has their lengths only together.
        judged = units(workflow)
        watched = tuple(dict.fromkeys((*watched, *judged[len(workflow.role_names) :])))
        self._lengths = {role: context.board.watch(role, LENGTH) for role in judged}
        self._over = {role: Streak() for role in watched}
        self._judged: set[str] = set()
        self._unit = "tokens"

    def update(self, record: StepRecord) -> Iterator[Verdict]:
        self._unit = record.labels.get(LENGTH_UNIT, "tokens")
        together = EVERYONE in self._lengths and self._lengths[EVERYONE].seen
        for role in self._over:
            state = self._lengths[role]
            if state.judged:
                self._judged.add(role)
                yield self._judge(role, record.step, state)
            elif role not in self._judged and (state.seen or not (role == EVERYONE or together)):
                yield waiting(NAME, role, state.lacking("response lengths"))

    def _judge(self, role: str, step: int, state: StreamState) -> Verdict:
        # The limit is in tokens, and says nothing about characters.
        limit = self._settings.limit if self._unit == "tokens" else 0.0
        too_long = self._over[role].observe(step, 0 < limit <= state.now) >= _PATIENCE
        rest = {
            name: other for name, other in self._lengths.items() if name not in (role, EVERYONE)
        }
        others = [other.change for other in rest.values() if other.judged]
        alike = bool(others) and state.change - median(others) < _ALIKE
        grown = state.complete and state.now - state.typical >= _LEAST_TOKENS
        drift = too_long or (grown and not alike)
        reason = (
            f"responses are {state.ratio:.2f} times as long as at the start "
            f"({state.typical:.1f} -> {state.now:.1f} {self._unit})"
        )
        if drift and state.sick_start and state.yardstick is not None:
            reason += f", which is that of {state.yardstick.source}"
        elif not drift and state.leaning:
            evidence = f"; evidence {state.evidence:.1f}, {state.needed:.1f} needed"
            reason += "; the other roles have grown alike" if grown and alike else evidence
        text = ", ".join(
            f"{name} x{other.ratio:.2f}" for name, other in rest.items() if other.known
        )
        reason += f"; other roles: {text}" if text else ""
        return state.verdict(
            NAME,
            f"{reason}; {self._course}",
            NAME if drift else "",
            self._severity(too_long),
            threshold=limit or None,
            onset=step if state.onset is None else state.onset,
        )

    def _severity(self, too_long: bool) -> Severity:
        """Longer responses with rising accuracy are what reasoning models are trained for."""
        harmless = self._course.direction in ("rose", "unknown") and not too_long
        return "suspicious" if harmless else "failing"


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
            (f"{DR_GRPO}: wrong responses grow", SINGHAL, DR_MAS, BENCHMARK),
        ),
    ),
    make=_LengthInflation,
    reads=("length",),
    needs=("response lengths",),
    settings=LengthSettings,
)
