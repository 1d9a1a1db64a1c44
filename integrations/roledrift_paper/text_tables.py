"""Tables 4, 5 and 6: what the texts look like at three checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from roledrift.measure.milestones import phases
from roledrift.report.cells import Cell, Table
from roledrift.report.model import Block, Note
from roledrift.report.sweep.summary import Summary
from roledrift_paper.grid import over_seeds, place, stressed, trained
from roledrift_paper.measured import of
from roledrift_paper.texts import Wording

Column = tuple[str, str, Callable[[Wording], float], bool]
"""Heading, kind of role, value, whether it is a share."""

_SOLVER: tuple[Column, ...] = (
    ("mean length", "solve", lambda words: words.length, False),
    ("truncated", "solve", lambda words: words.truncated, True),
    ("boxed", "solve", lambda words: words.boxed, True),
    ("hedging", "solve", lambda words: words.hedging, True),
    ("3-gram overlap", "solve", lambda words: words.jaccard, False),
)
_VOTING: tuple[Column, ...] = (
    *_SOLVER,
    ("p50", "take", lambda words: words.p50, False),
    ("p95", "take", lambda words: words.p95, False),
    ("terse", "take", lambda words: words.terse, True),
)
_JUDGED: tuple[Column, ...] = (
    ("p50", "judge", lambda words: words.p50, False),
    ("p95", "judge", lambda words: words.p95, False),
    ("code fence", "judge", lambda words: words.fence, True),
    ("bare stamp", "judge", lambda words: words.stamp, True),
    ("verdict tag", "judge", lambda words: words.verdict, True),
    ("says correct", "judge", lambda words: words.correct, True),
    ("unparseable", "judge", lambda words: words.unparseable, True),
    ("p50", "solve", lambda words: words.p50, False),
    ("p95", "solve", lambda words: words.p95, False),
    ("truncated", "solve", lambda words: words.truncated, True),
    ("boxed", "solve", lambda words: words.boxed, True),
)
_ORCHESTRATED: tuple[Column, ...] = (
    *_SOLVER,
    ("openers", "plan", lambda words: float(words.openers), False),
    ("p50", "take", lambda words: words.p50, False),
    ("p95", "take", lambda words: words.p95, False),
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
    tables: list[Block] = []
    for key, title, workflow, columns in TABLES:
        runs = [
            summary
            for summary in summaries
            if summary.workflow.removesuffix("_v2") == workflow
            and of(summary).wording
            and trained(summary)
        ]
        if runs:
            tables.append(_table(key, title, runs, columns))
        else:
            number_ = title.split(":")[0]
            tables.append(Note(f"{number_} needs {workflow} runs with kept texts."))
    return tuple(tables)


def _table(key: str, title: str, runs: Sequence[Summary], columns: tuple[Column, ...]) -> Table:
    rows = []
    for seeds in _pools(runs):
        for name, steps in _moments(seeds).items():
            here = [
                {words.role: words for words in of(run).wording if words.step == step}
                for run, step in zip(seeds, steps, strict=True)
            ]
            cells = [
                _cell(seeds, here, place, read, share=share) for _, place, read, share in columns
            ]
            rows.append((*_names(seeds, name, steps, here), *cells))
    heads = ("run", "policy", "checkpoint", "step", "problems")
    places = tuple(f"{_PLACES[place][0]}: {name}" for name, place, _, _ in columns)
    caption = (
        "Three checkpoints (early: halfway to the best validation; best; last; each the nearest "
        "step with texts) and the first 100 problems; lengths in tokens, shares in [0, 1]. Seeds "
        "of one cell are pooled: a value is the mean over them, the line below it says how they "
        "scatter. With fewer problems than 100 a share moves by more than 0.01 per text. Words "
        "for: generator = the role that solves, aggregator = the role that selects or synthesizes."
    )
    return Table((*heads, *places), tuple(rows), title, caption, key=key, sortable=True)


def _pools(runs: Sequence[Summary]) -> list[list[Summary]]:
    """Runs that are seeds of one another; one disturbed on purpose is a seed of nothing else."""
    pools: dict[tuple[object, ...], list[Summary]] = {}
    for run in runs:
        apart = (stressed(run), run.notes.get("transfer", ""))
        pools.setdefault((place(run), run.policy, *apart), []).append(run)
    return list(pools.values())


def _moments(runs: Sequence[Summary]) -> dict[str, tuple[int, ...]]:
    """Name of every checkpoint and its step in every run; those at the same steps are one."""
    phases_of_runs = [
        phases(sorted({words.step for words in of(run).wording}), _checkpoints(run)) for run in runs
    ]
    names = (
        phases_of_runs[0]
        if all(steps_of_run.keys() == phases_of_runs[0].keys() for steps_of_run in phases_of_runs)
        else ("last",)
    )
    moments: dict[tuple[int, ...], str] = {}
    for name in names:
        steps = tuple(steps_of_run[name] for steps_of_run in phases_of_runs)
        moments[steps] = f"{moments[steps]}, {name}" if steps in moments else name
    return {name: steps for steps, name in moments.items()}


def _checkpoints(run: Summary) -> Mapping[int, float]:
    """Accuracies of the run itself: an import's base model was evaluated apart from it."""
    if "base accuracy" not in run.notes:
        return run.validation
    return {step: value for step, value in run.validation.items() if step > 0}


def _names(
    runs: Sequence[Summary], name: str, steps: tuple[int, ...], here: list[dict[str, Wording]]
) -> tuple[Cell, ...]:
    """The first cells of a row: whose texts these are, and from when."""
    first, low, high = runs[0], min(steps), max(steps)
    problems = sum(max((words.problems for words in roles.values()), default=0) for roles in here)
    single = len(runs) == 1
    return (
        Cell(first.name if single else place(first).label, href=first.href),
        Cell(first.policy, note="" if single else f"{len(runs)} runs"),
        Cell(name),
        Cell(str(low) if low == high else f"{low}\N{EN DASH}{high}", float(low)),
        Cell(str(problems), float(problems)),
    )


def _cell(
    runs: Sequence[Summary],
    here: list[dict[str, Wording]],
    where: str,
    read: Callable[[Wording], float],
    *,
    share: bool,
) -> Cell:
    """One number on the texts of a role, over the seeds."""
    values = {
        run.key: value
        for run, roles in zip(runs, here, strict=True)
        for role, words in roles.items()
        if role.rstrip("0123456789") in _PLACES[where] and math.isfinite(value := read(words))
    }
    return over_seeds(
        runs,
        lambda run: values.get(run.key),
        ".2f" if share else "",
        limits=(0.0, 1.0 if share else math.inf),
    )
