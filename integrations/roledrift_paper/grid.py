"""Runs in the cells of the paper's grid: task, scale, workflow, policy; several seeds in one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import stdev
from typing import NamedTuple

from roledrift.records import NOTE_BASE, NOTE_SET, NOTE_TRANSFER
from roledrift.report.cells import UNKNOWN, Cell
from roledrift.report.numbers import number
from roledrift.report.sweep.summary import Summary
from roledrift_paper.intervals import of_mean

POLICIES = {"SA": 0, "IP": 1, "SP": 2, "mixed": 3}
"""Policy to index of its colour."""


class Place(NamedTuple):
    """Where a run stands in the grid.

    Attributes:
        validated: Problems behind its validation accuracy, if its header names them: accuracies on
            different problems are not averaged.
    """

    task: str
    scale: str
    workflow: str
    validated: str = ""

    @property
    def label(self) -> str:
        """In words, without what is not known."""
        return " · ".join(part for part in self if part) or "unnamed"


SCALES = ("0.6b", "1.7b", "4b")
"""Sizes of the base models in the paper's grid."""

TASKS = ("math", "code")


def of_grid(summaries: Sequence[Summary]) -> bool:
    """Whether some run is of the paper's grid: one of its tasks at one of its scales."""
    return any(
        summary.task in TASKS and summary.scale.lower().endswith(SCALES) for summary in summaries
    )


def place(run: Summary) -> Place:
    """The place of one run."""
    return Place(run.task, run.scale, run.workflow, run.notes.get(NOTE_SET, ""))


def trained(run: Summary) -> bool:
    """Whether a run is a training, and not an evaluation of another one or of the base model."""
    return NOTE_TRANSFER not in run.notes and NOTE_BASE not in run.notes


def stressed(run: Summary) -> str:
    """How a run was disturbed on purpose, as its header says (note ``stress``); else empty."""
    word = run.notes.get("stress", "")
    return "" if word == "none" else word


def grid(
    summaries: Sequence[Summary], *, everything: bool = False
) -> dict[Place, dict[str, list[Summary]]]:
    """Place to policy to runs, seeds in order; of trainings alone.

    Args:
        summaries: The runs.
        everything: With the runs that were disturbed on purpose. These must not be averaged with
            others as if they were seeds of one cell.
    """
    cells: dict[Place, dict[str, list[Summary]]] = {}
    order = sorted(
        summaries,
        key=lambda summary: (place(summary), summary.policy, summary.seed or 0, summary.key),
    )
    for run in order:
        if trained(run) and (everything or not stressed(run)):
            cells.setdefault(place(run), {}).setdefault(run.policy, []).append(run)
    return cells


def legend(
    cells: Mapping[Place, Mapping[str, Sequence[Summary]]],
) -> tuple[tuple[str, int, int], ...]:
    """Colours of the policies that are there, as the keys of a plot."""
    present = {policy for policies in cells.values() for policy in policies}
    return tuple((policy, tone, 0) for policy, tone in POLICIES.items() if policy in present)


def of_block(cells: Mapping[Place, Mapping[str, list[Summary]]], at: Place) -> list[Summary]:
    """Single-role runs of the same task and scale, on the same problems."""
    return [
        run
        for other, policies in cells.items()
        if (other[:2], other.validated) == (at[:2], at.validated)
        for run in policies.get("SA", ())
    ]


def mean(values: Sequence[float]) -> float | None:
    """Mean of the finite values; None if there are none."""
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else None


def over_seeds(
    runs: Sequence[Summary],
    read: Callable[[Summary], float | None],
    shown: str = "",
    *,
    limits: tuple[float, float] | None = None,
) -> Cell:
    """One number from one or several seeds, linked to its run (of several, the first).

    Several seeds show their mean with its 95 % interval; two seeds, and runs that share a seed,
    show the standard deviation instead.

    Args:
        runs: Runs of one cell.
        read: The number of one run; None if it has none.
        shown: Format of the text; three significant digits if empty.
        limits: What the number cannot be below and above; None for those of an accuracy if that is
            what is read, and none otherwise.
    """
    if limits is None:
        limits = (0.0, 1.0) if read in (peak, base) else (-math.inf, math.inf)
    having = [(run, value) for run in runs if (value := read(run)) is not None]
    values = [value for _, value in having if math.isfinite(value)]
    middle = mean(values)
    if middle is None:
        return UNKNOWN

    def text_of(value: float) -> str:
        return f"{value:{shown}}" if shown else number(value)

    note = ""
    if len(values) > 1:
        spread = stdev(values)
        alike = len({run.seed for run, _ in having}) < len(having)
        note = f"n={len(values)} {'runs' if alike else 'seeds'}, sd {text_of(spread)}"
        if not alike and (ends := of_mean(values, limits)):
            note = f"n={len(values)} seeds, 95 %: {text_of(ends[0])} to {text_of(ends[1])}"
    return Cell(text_of(middle), middle, note=note, href=having[0][0].href)


def points(a: Cell, b: Cell) -> Cell:
    """Difference of two accuracies in percentage points."""
    if a.value is None or b.value is None:
        return UNKNOWN
    difference = 100 * (a.value - b.value)
    return Cell(f"{difference:+.1f}", difference)


def peak(run: Summary) -> float | None:
    """Best validation accuracy of a checkpoint: the base model, at step 0, is none."""
    finite = {step: value for step, value in run.validation.items() if math.isfinite(value)}
    of_checkpoints = [value for step, value in finite.items() if step > 0]
    return max(of_checkpoints or finite.values(), default=None)


def base(run: Summary) -> float | None:
    """Validation accuracy before training: at step 0."""
    return run.validation.get(0)
