r"""What a judging role says: the share of ``\boxed{Correct}`` among its verdicts."""

from __future__ import annotations

import numpy as np

from roledrift.measure.cards import ProbeCard, Statistic
from roledrift.measure.groups import Columns, Pooled, SpanProbe, given
from roledrift.measure.shape import boxes
from roledrift.spans import SpanTable
from roledrift.workflow import Workflow


def verdicts(workflow: Workflow) -> SpanProbe:
    r"""``verdict_correct``: share of a judge's verdicts that say Correct, over outputs with one.

    A verdict is the last box of an output whose content is Correct or Incorrect in any case; an
    output without one is left out (``verdict_tag`` counts those). Only of roles that judge.
    """

    def read(spans: SpanTable) -> Columns:
        return _verdicts(spans, workflow)

    return SpanProbe("verdicts", frozenset({"text_N"}), workflow, read)


def verdict(text: str) -> bool | None:
    """True for Correct, False for Incorrect, None without either; the last one counts."""
    contents = [box.lower() for box in boxes(text)]
    known = [content == "correct" for content in contents if content in ("correct", "incorrect")]
    return known[-1] if known else None


def _verdicts(spans: SpanTable, workflow: Workflow) -> Columns:
    judges = {role.name for role in workflow.roles if role.duty == "judge"}
    judging = [index for index, name in enumerate(spans.roles) if name in judges]
    given_N = np.zeros(len(spans), dtype=np.bool_)
    correct_N = np.zeros(len(spans), dtype=np.bool_)
    text_N = given(spans.text_N)
    for row in np.flatnonzero(np.isin(spans.role_N, judging)).tolist():
        correct = verdict(text_N[row] or "")
        given_N[row], correct_N[row] = correct is not None, correct is True
    return {"verdict_correct": Pooled(given_N, correct_N)}


def _judged(workflow: Workflow) -> bool:
    return any(role.duty == "judge" for role in workflow.roles)


CARDS = (
    ProbeCard(
        "verdicts",
        verdicts,
        (
            Statistic(
                "verdict_correct",
                "Verdict “correct”",
                "share of verdicts",
                formula="share of a judge's verdicts that say Correct, over outputs with one",
                words="share of the verdict “correct”",
                share=True,
                chart=False,
            ),
        ),
        applies=_judged,
    ),
)
