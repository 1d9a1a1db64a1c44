"""``repetition``: responses repeat themselves ever more."""

from __future__ import annotations

from collections.abc import Sequence

from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import SHARES
from roledrift.detect.evidence.streams import MINOR, Stream
from roledrift.detect.remedies import KL_ANCHOR, LOWER_RATE
from roledrift.detect.units import not_logged, reader, units
from roledrift.judgement import Verdict
from roledrift.records import StepRecord

NAME = "repetition"
_LEAST = 0.15

REPEATED = Stream("repetition", SHARES, 1, 0.1, 0.05, 0.03, 0.2, reader("repetition"), weight=MINOR)


class _Repetition:
    def __init__(self, context: Context) -> None:
        self._workflow, self._course = context.workflow, context.course
        self._streams = {
            unit: context.board.watch(unit, REPEATED) for unit in units(context.workflow)
        }
        self._absent = not_logged(NAME, self._workflow, "share of repetition")

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        verdicts = []
        for _unit, state in self._streams.items():
            if not state.judged or state.step != record.step:
                continue
            drift = state.complete and state.now >= _LEAST
            verdicts.append(
                state.verdict(
                    NAME,
                    f"repeated: {state.typical:.1%} -> {state.now:.1%}; {self._course}",
                    NAME if drift else "",
                    "failing" if self._course.losing else "suspicious",
                    onset=state.onset if drift else None,
                )
            )
        if verdicts or any(state.seen for state in self._streams.values()):
            return verdicts
        return [self._absent]


CARD = Card(
    name=NAME,
    about="Watches the share of each role's responses that repeats what they said before.",
    findings=(
        Finding(
            NAME,
            "{who} has been repeating itself since step {onset}",
            "A growing share of the responses repeats itself.",
            "text",
            "suspicious",
            (
                "read the longest responses: loops end at the length limit",
                "take truncated responses out of the loss, or give them a reward of their own",
                LOWER_RATE,
                KL_ANCHOR,
            ),
            (
                "Holtzman et al. (2020), The Curious Case of Neural Text Degeneration, "
                "arXiv 1904.09751",
            ),
        ),
    ),
    make=_Repetition,
    reads=(NAME,),
    needs=("the share of repetition (logged as repetition_rate)",),
    order=6,
)
