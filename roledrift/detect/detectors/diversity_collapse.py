"""``diversity_collapse``: the slots of a role have become copies of each other, also where wrong.

Slots that are all right agree, and training makes more of them right; agreement is damage only
where it is about mistakes. So agreement and overlap of words are measured among wrong siblings
alone. The number of different openings per text falls in healthy runs as well and only lends
support: two of the three signs are needed, and nothing gained.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from roledrift.detect.abstaining import Presence, no_verdict, waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import RATIOS, SHARES
from roledrift.detect.evidence.streams import Stream
from roledrift.detect.remedies import KL_ANCHOR
from roledrift.detect.sources import BENCHMARK, KIRK, WORKFLOWS
from roledrift.judgement import Verdict
from roledrift.records import StepRecord

NAME = "diversity_collapse"
UNIFORM = "uniform_siblings"
NEED = "texts and rewards of wrong siblings"

POOL = 24.0
"""Pairs of wrong siblings that a share must be the mean of."""


def _openers(record: StepRecord, role: str) -> float | None:
    counted = record.counted(role, "openers")
    if counted is None or not (counted[0] > 0 and counted[1] > 0):
        return None
    return counted[1] / counted[0]


AGREEMENT = Stream("wrong_agreement", SHARES, 1, 0.1, 0.1, 0.08, 0.1, pool=POOL)
OVERLAP = Stream("wrong_jaccard", SHARES, 1, 0.1, 0.1, 0.06, 0.1, pool=POOL)
OPENERS = Stream("openers", RATIOS, -1, math.log(1.5), 0.2, 0.12, 0.2, _openers)

_SIGNS = {
    "wrong siblings that give the same answer": AGREEMENT,
    "words that wrong siblings share": OVERLAP,
    "different openings per text": OPENERS,
}


class _DiversityCollapse:
    def __init__(self, context: Context) -> None:
        self._course = context.course
        self._signs = {
            role.name: {
                label: context.board.watch(role.name, sign) for label, sign in _SIGNS.items()
            }
            for role in context.workflow.roles
            if role.slots > 1
        }
        self._roles = context.workflow.role_names
        self._presence = Presence(NAME, NEED)

    def update(self, record: StepRecord) -> Iterator[Verdict | None]:
        for role in self._roles:
            if role not in self._signs:
                why = "does not apply: the role has one slot, it has no siblings"
                yield no_verdict(NAME, role, why)
                continue
            wrong = [sign for sign in self._signs[role].values() if sign.of is not OPENERS]
            measured = any(record.mean(role, sign.of.name) is not None for sign in wrong)
            withheld = self._presence.observe(role, record.step, measured)
            if any(sign.judged for sign in wrong):
                yield self._judge(role)
            elif measured and not any(sign.known for sign in wrong):
                lacks = max(min(sign.start.lacks for sign in wrong), 1)
                yield waiting(
                    NAME, role, f"{lacks} more batches of {POOL:.0f} pairs of wrong sibling answers"
                )
            else:
                yield withheld

    def _judge(self, role: str) -> Verdict:
        signs = self._signs[role]
        agreement, overlap, _ = signs.values()
        leading = agreement if agreement.known else overlap
        complete = [sign for sign in signs.values() if sign.complete]
        lost = self._course.direction in ("level", "fell")
        alike = agreement.complete or overlap.complete
        finding = NAME if agreement.complete else UNIFORM
        text = "; ".join(
            f"{label} {sign.typical:.2g} -> {sign.now:.2g}"
            for label, sign in signs.items()
            if sign.known
        )
        return leading.verdict(
            NAME,
            f"{text}; {self._course}",
            finding if alike and lost and len(complete) >= 2 else "",
            self._course.severity,
            watch=alike,
            onset=min((sign.onset for sign in complete if sign.onset is not None), default=None),
            evidence=max(agreement.evidence, overlap.evidence),
        )


_ADVICE = (
    "raise the sampling temperature of {role}",
    "give each slot of {role} a prompt or an order of the problem of its own",
    KL_ANCHOR,
)

_SOURCES = (KIRK, f"{WORKFLOWS}: slots that agree on wrong answers", BENCHMARK)

CARD = Card(
    name=NAME,
    about=(
        "Watches whether the slots of a role make the same mistakes in the same words, while "
        "nothing is gained by it."
    ),
    findings=(
        Finding(
            NAME,
            "Slots of {the} have made the same mistakes since step {onset}",
            "The slots of a role give the same wrong answers, and accuracy has not risen.",
            "outcome",
            "suspicious",
            _ADVICE,
            _SOURCES,
        ),
        Finding(
            UNIFORM,
            "Slots of {the} have written alike where they are wrong since step {onset}",
            "The slots of a role write in the same words where they are wrong.",
            "outcome",
            "suspicious",
            _ADVICE,
            _SOURCES,
        ),
    ),
    make=_DiversityCollapse,
    reads=("wrong_agreement", "wrong_jaccard", "openers", "accuracy"),
    needs=(NEED,),
    order=6,
)
