"""Tables 4, 5 and 6: what the texts look like at three checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from roledrift.report.cells import UNKNOWN, Cell, Table
from roledrift.report.model import Block, Note
from roledrift.report.numbers import number
from roledrift.report.paper.grid import trained
from roledrift.report.summary import Summary
from roledrift.report.wording import Wording

Column = tuple[str, str, Callable[[Wording], float], bool]
"""Heading, kind of role, value, whether it is a share."""

_SOLVER: tuple[Column, ...] = (
    ("mean length", "solve", lambda one: one.length, False),
    ("truncated", "solve", lambda one: one.truncated, True),
    ("boxed", "solve", lambda one: one.boxed, True),
    ("hedging", "solve", lambda one: one.hedging, True),
    ("3-gram overlap", "solve", lambda one: one.jaccard, False),
)
_VOTING: tuple[Column, ...] = (
    *_SOLVER,
    ("p50", "take", lambda one: one.p50, False),
    ("p95", "take", lambda one: one.p95, False),
    ("terse", "take", lambda one: one.terse, True),
)
_JUDGED: tuple[Column, ...] = (
    ("p50", "judge", lambda one: one.p50, False),
    ("p95", "judge", lambda one: one.p95, False),
    ("code fence", "judge", lambda one: one.fence, True),
    ("bare stamp", "judge", lambda one: one.stamp, True),
    ("verdict tag", "judge", lambda one: one.verdict, True),
    ("says correct", "judge", lambda one: one.correct, True),
    ("unparseable", "judge", lambda one: one.unparseable, True),
    ("p50", "solve", lambda one: one.p50, False),
    ("p95", "solve", lambda one: one.p95, False),
    ("truncated", "solve", lambda one: one.truncated, True),
    ("boxed", "solve", lambda one: one.boxed, True),
)
_ORCHESTRATED: tuple[Column, ...] = (
    *_SOLVER,
    ("openers", "plan", lambda one: float(one.openers), False),
    ("p50", "take", lambda one: one.p50, False),
    ("p95", "take", lambda one: one.p95, False),
)
TABLES: tuple[tuple[str, str, str, tuple[Column, ...]], ...] = (
    ("table4", "Table 4: texts of voting runs", "voting", _VOTING),
    ("table5", "Table 5: texts of evaluator-optimizer runs", "eval_opt", _JUDGED),
    ("table6", "Table 6: texts of orchestrator-workers runs", "orch_workers", _ORCHESTRATED),
)
_PLACES = {
    "solve": ("generator", "worker", "voter", "solver"),
    "take": ("aggregator", "synthesizer"),
    "judge": ("evaluator",),
    "plan": ("orchestrator",),
}


def blocks(summaries: Sequence[Summary]) -> tuple[Block, ...]:
    """A table per workflow that has texts."""
    found: list[Block] = []
    for key, title, workflow, columns in TABLES:
        runs = [
            one
            for one in summaries
            if one.workflow.removesuffix("_v2") == workflow and one.wording and trained(one)
        ]
        if runs:
            found.append(_table(key, title, runs, columns))
        else:
            number_ = title.split(":")[0]
            found.append(Note(f"{number_} needs {workflow} runs with kept texts."))
    return tuple(found)


def _table(key: str, title: str, runs: Sequence[Summary], columns: tuple[Column, ...]) -> Table:
    rows = []
    for run in runs:
        for step in sorted({one.step for one in run.wording}):
            here = {one.role: one for one in run.wording if one.step == step}
            cells = [_cell(here, place, read, run, share=s) for _, place, read, s in columns]
            most = max((one.problems for one in here.values()), default=0)
            names = (Cell(run.name, href=run.href), Cell(run.policy), Cell(str(step), float(step)))
            rows.append((*names, Cell(str(most), float(most)), *cells))
    heads = ("run", "policy", "step", "problems")
    places = tuple(f"{_PLACES[place][0]}: {name}" for name, place, _, _ in columns)
    caption = (
        "Up to three checkpoints (halfway to the best validation, best, last; the nearest step "
        "with texts) and the first 100 problems; lengths in tokens, shares in [0, 1]. With fewer "
        "problems than 100 a share moves by more than 0.01 per text. Words for: generator = the "
        "role that solves, aggregator = the role that selects or synthesizes."
    )
    return Table((*heads, *places), tuple(rows), title, caption, key=key, sortable=True)


def _cell(
    here: dict[str, Wording],
    place: str,
    read: Callable[[Wording], float],
    run: Summary,
    *,
    share: bool,
) -> Cell:
    role = next((one for one in here if one.rstrip("0123456789") in _PLACES[place]), "")
    if not role:
        return UNKNOWN
    value = read(here[role])
    if not math.isfinite(value):
        return UNKNOWN
    return Cell(f"{value:.2f}" if share else number(value), value, href=run.href)
