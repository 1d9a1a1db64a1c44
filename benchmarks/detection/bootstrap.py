"""Longer healthy runs out of recorded ones: blocks of their second halves, drawn again.

A recorded run has 34 steps, and users' runs have hundreds. Its first steps are kept in order; after
them come blocks of :data:`BLOCK` neighbouring records from the part where the run has settled. So
the noise is the recorded one, with its correlation within blocks. What still changes within that
part (accuracy, for one) jumps between blocks: that makes the rate an upper estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks.detection.evaluation import Runs
from benchmarks.detection.intervals import Share
from benchmarks.detection.judging import SCALES, Finding
from benchmarks.detection.recordings import load
from benchmarks.detection.replays import PROCESSES, alerts_of
from benchmarks.detection.suite import Place
from roledrift import StepRecord, replay

BLOCK = 5
SETTLED = 18
"""First step of the part of a run that blocks are drawn from."""

LENGTHS = (100, 500)


@dataclass(frozen=True, slots=True)
class Draw:
    """One run to make: which recording, and how long."""

    scenario: str
    place: Place
    steps: int


def lengthened(records: Sequence[StepRecord], steps: int, seed: int) -> list[StepRecord]:
    """A run of ``steps`` records out of a recorded one."""
    rng = np.random.default_rng(seed)
    start = [record for record in records if record.step < SETTLED]
    rest = [record for record in records if record.step >= SETTLED]
    chosen = list(start)
    while len(chosen) < steps:
        first = int(rng.integers(len(rest) - BLOCK + 1))
        chosen += rest[first : first + BLOCK]
    begin = records[0].step
    return [replace(record, step=begin + i) for i, record in enumerate(chosen[:steps])]


def findings_in(draw: Draw) -> tuple[Finding, ...]:
    """What the detectors say about one such run."""
    recording = load(draw.scenario, draw.place.seed, base=draw.place.base)
    records = lengthened(recording.steps, draw.steps, seed=0)
    return alerts_of(replay(records, recording.workflow).alerts)


def rates(runs: Runs) -> list[dict[str, Any]]:
    """Share of lengthened healthy runs in which anything is told, by length and scale.

    Those with enough steps are drawn from; of longer runs half as many are made.
    """
    keys = [
        key
        for key, run in runs.replayed.items()
        if runs.truths[key].family == "healthy" and run.facts.last >= SETTLED + 2 * BLOCK
    ]
    rows = []
    for length in LENGTHS:
        chosen = keys if length == LENGTHS[0] else keys[::2]
        draws = [Draw(*key, length) for key in chosen]
        with ProcessPoolExecutor(PROCESSES, mp_context=get_context("fork")) as pool:
            findings = list(pool.map(findings_in, draws, chunksize=2))
        names = sorted({f"{run.severity}: {run.name}" for some in findings for run in some})
        shares = {
            scale: Share.of(any(run.counts(scale) for run in some) for some in findings)
            for scale in SCALES
        }
        rows.append({"steps": length, **shares, "told": "; ".join(names)})
    return rows
