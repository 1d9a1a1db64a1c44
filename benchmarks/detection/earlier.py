"""Yardsticks that a run gets from earlier healthy runs of its folder."""

from __future__ import annotations

from collections.abc import Sequence

from roledrift import StepRecord, Workflow
from roledrift.detect.evidence.start import Yardsticks
from roledrift.detect.suite import DetectorSuite
from roledrift.detect.yardsticks import LEAST_RUNS, combined

__all__ = ["LEAST_RUNS", "Yardsticks", "yardsticks_of"]


def yardsticks_of(runs: Sequence[Sequence[StepRecord]], workflow: Workflow) -> Yardsticks:
    """What the starts of some runs say about how a run of the workflow should start.

    A run's folder keeps the same: ``starts.json`` of every finished run beside it.
    """
    starts = []
    for records in runs:
        suite = DetectorSuite(workflow, rewinds=False)
        for record in records:
            suite.update(record)
        starts.append(suite.board.starts())
    return combined(starts)
