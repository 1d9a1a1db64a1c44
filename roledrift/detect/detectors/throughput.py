"""``throughput``: a step takes ever longer, beyond what longer responses explain."""

from __future__ import annotations

import math
from collections.abc import Sequence

from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import RATIOS
from roledrift.detect.evidence.streams import MINOR, Stream, StreamState
from roledrift.detect.units import not_logged, run_unit
from roledrift.judgement import Verdict
from roledrift.records import StepRecord

NAME = "throughput"
SLOWER = "slowdown"
_TIMES = 1.4
_TIMES_PER_TOKEN = 1.15


def _seconds(record: StepRecord, unit: str) -> float | None:
    value = _of_run(record, unit, "step_time")
    return value if value is not None and value > 0 else None


def _per_token(record: StepRecord, unit: str) -> float | None:
    seconds, length = _seconds(record, unit), _of_run(record, unit, "length")
    return seconds / length if seconds is not None and length else None


def _of_run(record: StepRecord, unit: str, name: str) -> float | None:
    """A statistic of the only role, or of all roles together whoever else has it."""
    value = record.mean(unit, name)
    return value if value is not None and math.isfinite(value) and value >= 0 else None


SECONDS = Stream("step_time", RATIOS, 1, math.log(1.2), 0.1, 0.03, 0.2, _seconds, weight=MINOR)
PER_TOKEN = Stream(
    "step_time/length", RATIOS, 1, math.log(1.05), 0.1, 0.03, 0.2, _per_token, weight=MINOR
)


class _Throughput:
    def __init__(self, context: Context) -> None:
        self._workflow = context.workflow
        self._unit = run_unit(context.workflow)
        self._seconds = context.board.watch(self._unit, SECONDS)
        self._per_token = context.board.watch(self._unit, PER_TOKEN)
        self._absent = not_logged(NAME, self._workflow, "time per step")

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        state, per = self._seconds, self._per_token
        if not state.seen:
            return [self._absent]
        if not state.judged or state.step != record.step:
            return []
        slower = state.complete and state.ratio >= _TIMES
        explained = per.known and per.ratio < _TIMES_PER_TOKEN
        drift = slower and not explained
        return [
            state.verdict(
                NAME,
                _text(state, per, explained=slower and explained),
                SLOWER if drift else "",
                "suspicious",
                onset=state.onset if drift else None,
            )
        ]


def _text(state: StreamState, per: StreamState, *, explained: bool) -> str:
    seconds = f"{state.typical:.3g} -> {state.now:.3g} s"
    text = f"a step takes {state.ratio:.2f} times as long ({seconds})"
    if per.known:
        text += f", per token of a response {per.ratio:.2f} times"
    return text + ("; longer responses explain it" if explained else "")


CARD = Card(
    name=NAME,
    about="Watches the time per step, beyond what longer responses explain.",
    findings=(
        Finding(
            SLOWER,
            "A step has taken {ratio:.1f} times as long since step {onset}",
            "Steps take longer than at the start, and longer responses do not explain it.",
            "outcome",
            "suspicious",
            (
                "compare the time for generation with that for the update",
                "look for memory that fills up, a cache that is evicted, a slow reward function",
            ),
            ("measured on the run itself, against its start: docs/detectors/throughput.md",),
        ),
    ),
    make=_Throughput,
    reads=("step_time", "length"),
    needs=("the time per step",),
    order=9,
)
