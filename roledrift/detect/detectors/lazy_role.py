"""``lazy_role``: what a role says has stopped mattering.

Three kinds, by what the role is there for. A judge that always gives the same verdict, though the
answers are not always right (``rubber_stamp``). A selecting role that gives one and the same answer
to every problem, though it did not at the start (``constant_output``). A synthesizing role whose
text is what it was given, though it was not at the start (``copies_input``). Each has its own name;
it is a lazy role when accuracy has fallen meanwhile. While accuracy rises none is told, but a judge
that stamps from the first step on: that is a fact about the judge, and needs no baseline.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from roledrift.detect.abstaining import Presence, no_verdict, waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.board import Board
from roledrift.detect.evidence.course import outcome
from roledrift.detect.evidence.scales import SHARES
from roledrift.detect.evidence.streak import Streak
from roledrift.detect.evidence.streams import Stream, StreamState
from roledrift.detect.remedies import AGENT_WISE, KL_ANCHOR
from roledrift.detect.sources import BENCHMARK, DR_MAS, LAZY_AGENTS, WORKFLOWS
from roledrift.judgement import Verdict
from roledrift.records import StepRecord
from roledrift.workflow import Role

NAME = "lazy_role"
STAMP, CONSTANT, COPIES = "rubber_stamp", "constant_output", "copies_input"

POOL = 48.0
"""Verdicts, or answers, that are looked at together."""

_ONE_VERDICT = 0.98
_OFF = 0.1
"""Share of verdicts, beyond three standard errors, by which a stamp is off the truth."""

_COPIED = 0.9
_PATIENCE = 3

COPIED = Stream("copied", SHARES, 1, 0.15, 0.1, 0.06, 0.2)


@dataclass(frozen=True, slots=True)
class _Seen:
    """One look at a role: the statistic, where lazy begins, whether it is, and the numbers."""

    value: float
    threshold: float
    lazy: bool
    text: str
    base: float | None = None


class _ConstantVerdict:
    """The same verdict always: compared with how often it is right, whatever the start was."""

    finding, statistic, need = STAMP, "verdict_correct", "verdicts and accuracy"

    def __init__(self) -> None:
        self._n = self._correct = self._solved = 0.0

    def observe(self, record: StepRecord, role: str) -> _Seen | None:
        counted, (source, solved) = record.counted(role, self.statistic), outcome(record)
        if counted is None or source != "accuracy" or solved is None:
            return None
        n, share = counted
        if not (n > 0 and 0 <= share <= 1 and 0 <= solved <= 1):
            return None
        self._n += n
        self._correct += n * share
        self._solved += n * solved
        if self._n < POOL:
            return None
        n, correct, truth = self._n, self._correct / self._n, self._solved / self._n
        self._n = self._correct = self._solved = 0.0
        larger = max(correct, 1 - correct)
        luck = 3 * math.sqrt(max(truth * (1 - truth), 1 / n) / n)
        word = "Correct" if correct >= 0.5 else "Incorrect"
        lazy = larger >= _ONE_VERDICT and abs(correct - truth) >= max(_OFF, luck)
        text = f"{larger:.3g} of {n:.0f} verdicts are {word}, while {truth:.2g} of the answers are"
        return _Seen(larger, _ONE_VERDICT, lazy, f"{text} correct")


class _Selector:
    """One answer to every problem, where there were several at the start."""

    finding, statistic, need = CONSTANT, "openers", "texts of the selecting role"

    def __init__(self) -> None:
        self._start: list[float] = []

    def observe(self, record: StepRecord, role: str) -> _Seen | None:
        counted = record.counted(role, self.statistic)
        if counted is None or not (counted[0] >= POOL / 2 and counted[1] >= 1):
            return None
        n, kinds = counted
        if len(self._start) < _PATIENCE + 1:
            self._start.append(kinds)
            return None
        base = min(self._start)
        text = f"{kinds:.0f} different openings in {n:.0f} answers, at least {base:.0f} before"
        return _Seen(kinds, 1.0, kinds <= 1 and base >= 3, text, base)


class _Synthesizer:
    """Nothing but what it was given, where it was not so at the start."""

    finding, statistic = COPIES, "copied"
    need = "texts of the synthesizing role and of those that solve"

    def __init__(self, copied: StreamState) -> None:
        self._copied = copied

    def observe(self, record: StepRecord, role: str) -> _Seen | None:
        copied = self._copied
        if not copied.judged or record.mean(role, self.statistic) is None:
            return None
        lazy = copied.complete and copied.now >= _COPIED
        text = f"{copied.now:.0%} of its words are its input's ({copied.typical:.0%} at the start)"
        return _Seen(copied.now, _COPIED, lazy, text, copied.typical)


_Kind = _ConstantVerdict | _Selector | _Synthesizer


def _kind(role: Role, board: Board) -> _Kind | None:
    if role.duty == "judge":
        return _ConstantVerdict()
    if role.duty == "select":
        return _Selector()
    return _Synthesizer(board.watch(role.name, COPIED)) if role.duty == "synthesize" else None


class _LazyRole:
    def __init__(self, context: Context) -> None:
        self._course = context.course
        roles = context.workflow.roles
        self._kinds = {role.name: _kind(role, context.board) for role in roles}
        self._presence = {
            role: Presence(NAME, kind.need) for role, kind in self._kinds.items() if kind
        }
        self._lazy = {role.name: Streak() for role in roles}
        self._looks: Counter[str] = Counter()

    def update(self, record: StepRecord) -> Iterator[Verdict | None]:
        for role, kind in self._kinds.items():
            if kind is None:
                why = "does not apply: only to roles that judge, select or synthesize"
                yield no_verdict(NAME, role, why)
                continue
            seen = kind.observe(record, role)
            measured = record.mean(role, kind.statistic) is not None
            withheld = self._presence[role].observe(role, record.step, measured)
            if seen is not None:
                yield self._judge(role, record.step, kind, seen)
            elif withheld is None and not self._looks[role]:
                yield waiting(NAME, role, f"more {kind.need}")
            else:
                yield withheld

    def _judge(self, role: str, step: int, kind: _Kind, seen: _Seen) -> Verdict:
        self._looks[role] += 1
        lazy = self._lazy[role]
        lazy.observe(step, seen.lazy)
        course = self._course.direction
        # Where all looks so far say the same, the judge has never done anything else.
        always = kind.finding == STAMP and lazy.n == self._looks[role]
        reported = lazy.n >= _PATIENCE and (always or course in ("level", "fell"))
        return Verdict(
            NAME,
            role,
            "drift" if reported else "watch" if lazy.n else "ok",
            (NAME if course == "fell" else kind.finding) if reported else "",
            statistic=kind.statistic,
            value=seen.value,
            threshold=seen.threshold,
            baseline=seen.base,
            onset=lazy.onset,
            reason=f"{seen.text}; {self._course}",
            severity=self._course.severity if reported else None,
        )


CARD = Card(
    name=NAME,
    about=(
        "Watches whether judges give one verdict only, selecting roles one answer only, and "
        "synthesizing roles nothing but their input."
    ),
    findings=(
        Finding(
            NAME,
            "The output of {the} has not mattered since step {onset}",
            "A role gives one verdict, one answer, or its input only, and accuracy has fallen.",
            "outcome",
            "failing",
            (AGENT_WISE, "reward {role} for its own verdicts or choices", KL_ANCHOR),
            (LAZY_AGENTS, DR_MAS),
        ),
        Finding(
            STAMP,
            "{who} has given the same verdict to everything since step {onset}",
            "A judge gives one verdict whatever the answer, and the answers are not all alike.",
            "outcome",
            "suspicious",
            (
                "reward {role} for verdicts that are right, not for the outcome alone",
                "balance right and wrong answers in what {role} is shown",
            ),
            (f"{WORKFLOWS}: bare stamps of evaluators", LAZY_AGENTS, BENCHMARK),
        ),
        Finding(
            CONSTANT,
            "{who} has given one answer to everything since step {onset}",
            "A selecting role gives one answer to all problems, and gave several at the start.",
            "outcome",
            "suspicious",
            ("shuffle the candidates, so that no position is always right", AGENT_WISE),
            (
                "Zheng et al. (2023), Judging LLM-as-a-Judge, arXiv 2306.05685: position bias",
                LAZY_AGENTS,
            ),
        ),
        Finding(
            COPIES,
            "{who} has copied its input since step {onset}",
            "A synthesizing role writes what it was given, and did not at the start.",
            "outcome",
            "suspicious",
            ("reward {role} for what it adds to its input", KL_ANCHOR),
            (LAZY_AGENTS,),
        ),
    ),
    make=_LazyRole,
    reads=("verdict_correct", "openers", "copied", "accuracy"),
    needs=("texts of roles that judge, select or synthesize",),
    order=6,
)
