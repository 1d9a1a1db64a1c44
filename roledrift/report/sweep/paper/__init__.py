"""Tables and figures of arXiv 2605.24202, computed from a folder of runs where the data are there.

Each module turns :class:`~roledrift.report.sweep.summary.Summary` values into blocks. A table that
the runs cannot fill becomes a note that says what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from roledrift.report.model import Block
from roledrift.report.sweep.paper import accuracy, magnification, pairs, warnings, wording
from roledrift.report.sweep.summary import Summary


def blocks(summaries: Sequence[Summary]) -> tuple[Block, ...]:
    """Warnings first, then tables 1 to 6, figures 2 to 6, and IP against SP by seed."""
    return (
        *warnings.blocks(summaries),
        *accuracy.blocks(summaries),
        *pairs.blocks(summaries),
        *magnification.blocks(summaries),
        *wording.blocks(summaries),
    )
