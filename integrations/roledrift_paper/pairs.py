"""Isolated minus shared policies, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from roledrift.report.cells import UNKNOWN, Cell, Table
from roledrift.report.model import Block, Note
from roledrift.report.sweep.summary import Summary
from roledrift_paper.grid import Place, grid, peak
from roledrift_paper.intervals import FEWEST, of_mean

Read = Callable[[Summary], float | None]


def blocks(summaries: Sequence[Summary]) -> tuple[Block, ...]:
    """The table, or what it needs; nothing if no cell has runs with both kinds of policies."""
    cells = grid(summaries)
    both = {at: cell for at, cell in cells.items() if "IP" in cell and "SP" in cell}
    rows = [row for at, policies in both.items() if (row := _row(at, policies))]
    if not rows:
        note = "Differences between IP and SP need validated runs of both with the same seeds."
        return (Note(note),) if both else ()
    columns = ("task", "scale", "workflow", "pairs", "at the peak, pp", "at the end, pp")
    caption = (
        "Validation accuracy with a policy per role minus that with one shared policy, in "
        "percentage points. Runs with the same seed see the same problems and are compared with "
        f"each other. The interval is that of the mean difference (95 %, Student's t), from "
        f"{FEWEST} pairs on. A peak is the best of several validations and leans upward on both "
        "sides."
    )
    title = "IP minus SP, paired by seed"
    return (Table(columns, tuple(rows), title, caption, key="pairs"),)


def _row(at: Place, policies: Mapping[str, Sequence[Summary]]) -> tuple[Cell, ...]:
    """One cell of the grid; empty without a pair."""
    pairs = paired(policies["IP"], policies["SP"])
    if not pairs:
        return ()
    names = (Cell(at.task or "–"), Cell(at.scale or "–"), Cell(at.workflow))
    count = Cell(str(len(pairs)), float(len(pairs)))
    return (*names, count, _difference(pairs, peak), _difference(pairs, final))


def paired(left: Sequence[Summary], partners: Sequence[Summary]) -> list[tuple[Summary, Summary]]:
    """Pair the runs that have the same seed.

    Runs without a seed have no partner, nor has a seed that one side has twice.
    """
    by_seed = [_once(left), _once(partners)]
    shared = sorted(by_seed[0].keys() & by_seed[1].keys())
    return [(by_seed[0][seed], by_seed[1][seed]) for seed in shared]


def _once(runs: Sequence[Summary]) -> dict[int, Summary]:
    seeds = [run.seed for run in runs]
    return {run.seed: run for run in runs if run.seed is not None and seeds.count(run.seed) == 1}


def final(run: Summary) -> float | None:
    """The last validation accuracy."""
    finite = {step: value for step, value in run.validation.items() if math.isfinite(value)}
    return finite[max(finite)] if finite else None


def _difference(pairs: Sequence[tuple[Summary, Summary]], read: Read) -> Cell:
    values = [
        100.0 * (a - b)
        for left, pair in pairs
        if (a := read(left)) is not None and (b := read(pair)) is not None
    ]
    if not values:
        return UNKNOWN
    middle, ends = fmean(values), of_mean(values)
    if ends is None:
        alike = "the same in all pairs"
        note = alike if len(values) >= FEWEST else "too few pairs for an interval"
        return Cell(f"{middle:+.1f}", middle, note=note)
    low, high = ends
    return Cell(f"{middle:+.1f}", middle, note=f"95 %: {low:+.1f} to {high:+.1f}")
