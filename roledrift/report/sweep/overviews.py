"""Tables and figures above a folder of runs that are found by an entry point.

The group is ``roledrift.overviews``; the tables of arXiv 2605.24202 (``roledrift_paper``) are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roledrift.errors import ConfigError
from roledrift.extensions import attempt, usable
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Block, Note
from roledrift.report.sweep.summary import Summary

PAPER = "paper"
"""Name of the overview that ``--paper`` asks for."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What somebody adds to the index of several runs.

    Attributes:
        name: Name of its entry point.
        measure: What it needs of a run, as something small that can be pickled: only one run is in
            memory at a time. It comes back as ``summary.measured[name]``.
        applies: Whether these runs get it without being asked.
        blocks: From the runs that were measured to what is shown.
    """

    name: str
    measure: Callable[[JudgedRun], Any]
    applies: Callable[[Sequence[Summary]], bool]
    blocks: Callable[[Sequence[Summary]], Sequence[Block]]


def _installed() -> Mapping[str, Overview]:
    return usable("overviews", shipped=())[0]


def measured(run: JudgedRun) -> dict[str, Any]:
    """What all overviews need of a run, by their names; without those that failed on it."""
    results = {
        name: attempt(f"overview {name} of {run.name}", overview.measure, run)[0]
        for name, overview in _installed().items()
    }
    return {name: result for name, result in results.items() if result is not None}


def added(summaries: Sequence[Summary], *, paper: bool) -> Iterator[Block]:
    """The blocks of all overviews that apply or were asked for.

    Raises:
        ConfigError: If the paper's tables are asked for and not installed.
    """
    overviews = _installed()
    if paper and PAPER not in overviews:
        raise ConfigError(
            "the tables of the paper are not installed: reinstall roledrift, whose package "
            "roledrift_paper brings them"
        )
    for name, overview in overviews.items():
        runs = [summary for summary in summaries if name in summary.measured]
        if (paper and name == PAPER) or overview.applies(runs):
            blocks, fault = attempt(f"overview {name}", overview.blocks, runs)
            yield from blocks or ()
            if fault:
                yield Note(f"The overview {name} could not be made: {fault}")
