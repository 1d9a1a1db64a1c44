"""Simulated runs through the detectors, side by side, and what they said."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

from benchmarks.detection.earlier import LEAST_RUNS, Yardsticks, yardsticks_of
from benchmarks.detection.judging import Finding
from benchmarks.detection.replays import alerts_of
from benchmarks.detection.simulations.plans import RunPlan
from benchmarks.detection.simulations.synthesis import simulate
from roledrift import Config, StepRecord, replay

_YARDSTICKS: dict[tuple[str, int], Yardsticks] = {}


@dataclass(frozen=True)
class Trial:
    """One simulated run.

    Attributes:
        cell: What kind of run it is, for tables.
        plan: The run.
        seed: Of its random numbers.
        onset: First step with what is wrong; None for a healthy run.
        roles: Roles that a right alert is about.
        fall: Step from which the accuracy falls; None if it does not.
        reference: Another run whose start is the yardstick; None without. Likewise ``earlier``:
            the starts of three such runs.
    """

    cell: str
    plan: RunPlan
    seed: int
    onset: int | None = None
    roles: tuple[str, ...] = ()
    fall: int | None = None
    reference: RunPlan | None = None
    earlier: RunPlan | None = None


@dataclass(frozen=True)
class Tried:
    """What was told of it.

    Attributes:
        trial: The run.
        findings: As they opened or escalated.
        withheld: Detectors that gave no verdict in the end although they apply, with the role.
        faults: Detectors that failed.
        seconds: What the judgement took.
    """

    trial: Trial
    findings: tuple[Finding, ...]
    withheld: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)


def tried(trial: Trial) -> Tried:
    """Simulate and judge one run."""
    records = simulate(trial.plan, trial.seed)
    reference: Sequence[StepRecord] = ()
    if trial.reference is not None:
        reference = simulate(trial.reference, trial.seed + 1_000_003)
    workflow, known = trial.plan.workflow, _earlier(trial)
    begin = time.perf_counter()
    result = replay(records, workflow, Config(), reference=reference, yardsticks=known)
    spent = time.perf_counter() - begin
    withheld = tuple(
        f"{verdict.detector} ({verdict.role})"
        for verdict in result.verdicts
        if verdict.state == "no verdict" and "withheld" in verdict.reason
    )
    return Tried(trial, alerts_of(result.alerts), withheld, tuple(result.faults), spent)


def _earlier(trial: Trial) -> Yardsticks | None:
    """Yardsticks out of three earlier runs; five sets of them are made, as they take their time."""
    if trial.earlier is None:
        return None
    group = trial.seed % 5
    key = (str(trial.earlier.workflow), group)
    if key not in _YARDSTICKS:
        runs = [simulate(trial.earlier, 2_000_000 + 10 * group + i) for i in range(LEAST_RUNS)]
        _YARDSTICKS[key] = yardsticks_of(runs, trial.earlier.workflow)
    return _YARDSTICKS[key]


def try_all(trials: Sequence[Trial], processes: int = 2) -> list[Tried]:
    """All of them, in order."""
    if processes < 2:
        return [tried(trial) for trial in trials]
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        return list(pool.map(tried, trials, chunksize=1))
