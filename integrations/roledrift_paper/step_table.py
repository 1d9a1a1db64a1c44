"""The data behind a figure: curves as a table of steps."""

from __future__ import annotations

from collections.abc import Mapping

from roledrift.report.cells import Table
from roledrift.report.numbers import cell, count

ROWS = 60
"""Most steps of a table."""


def step_table(columns: Mapping[str, Mapping[int, float]]) -> Table:
    """Curves as a table of at most 60 steps, evenly spread from the first to the last.

    Args:
        columns: Column name to curve, a curve being step to value.
    """
    steps = sorted({step for curve in columns.values() for step in curve})
    last = len(steps) - 1
    shown = steps if last < ROWS else [steps[at * last // (ROWS - 1)] for at in range(ROWS)]
    rows = tuple(
        (count(step), *(cell(curve.get(step)) for curve in columns.values())) for step in shown
    )
    left_out = len(shown) < len(steps)
    caption = f"{ROWS} of {len(steps)} steps, evenly spread; the run directory holds all."
    return Table(("step", *columns), rows, "Data", caption if left_out else "", collapsed=True)
