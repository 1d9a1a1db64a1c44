"""A detector as somebody else would write it: one card in one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roledrift.detect.abstaining import waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import RATIOS
from roledrift.detect.evidence.streams import Stream
from roledrift.judgement import Verdict
from roledrift.records import StepRecord


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of ``loudness``: ``least`` is the value below which nothing is loud."""

    least: float = 0.0
    roles: tuple[str, ...] = ()


LOUDNESS = Stream("loudness", RATIOS, 1, 0.2, 0.1, 0.05)


class Loudness:
    name = "loudness"

    def __init__(self, context: Context) -> None:
        self.least = context.settings.least
        roles = context.settings.roles or context.workflow.role_names
        self.states = {role: context.board.watch(role, LOUDNESS) for role in roles}

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        return [self.judge(role) for role in self.states]

    def judge(self, role: str) -> Verdict:
        state = self.states[role]
        if not state.judged:
            return waiting(self.name, role, "loudness")
        loud = state.complete and state.now >= self.least
        return Verdict(
            self.name,
            role,
            "drift" if loud else "ok",
            "shouting" if loud else "",
            "loudness",
            value=state.now,
            baseline=state.typical,
            onset=state.onset if loud else None,
            reason=f"it is x{state.ratio:.1f} as loud as at the start",
        )


CARD = Card(
    name="loudness",
    about="Watches how loud roles are.",
    findings=(
        Finding(
            "shouting",
            "{who} has been x{ratio:.1f} as loud since step {onset}",
            "A role shouts.",
            "text",
            "failing",
            ("ask {role} to be quiet",),
        ),
    ),
    make=Loudness,
    reads=("loudness",),
    needs=("loudness",),
    settings=Settings,
)
