"""Tables and figures of arXiv 2605.24202 above a folder of runs, where the data are there.

A table that the runs cannot fill becomes a note that says what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from roledrift.report.model import Block
from roledrift.report.sweep.overviews import PAPER, Overview
from roledrift.report.sweep.summary import Summary
from roledrift_paper import accuracy, movement, pairs, text_tables, warnings
from roledrift_paper.grid import of_grid
from roledrift_paper.measured import measure


def blocks(summaries: Sequence[Summary]) -> tuple[Block, ...]:
    """Warnings first, then tables 1 to 6, figures 2 to 6, and IP against SP by seed."""
    return (
        *warnings.blocks(summaries),
        *accuracy.blocks(summaries),
        *pairs.blocks(summaries),
        *movement.blocks(summaries),
        *text_tables.blocks(summaries),
    )


OVERVIEW = Overview(PAPER, measure, of_grid, blocks)
