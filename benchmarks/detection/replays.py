"""Recorded runs through the detectors, in two processes; what a run is, without its records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from benchmarks.detection.captures import capture
from benchmarks.detection.earlier import LEAST_RUNS, yardsticks_of
from benchmarks.detection.effects import Facts
from benchmarks.detection.judging import Finding
from benchmarks.detection.recordings import Recording, load
from benchmarks.detection.suite import Place
from benchmarks.detection.variants import VARIANTS
from roledrift import StepRecord, Workflow, replay
from roledrift.records import Alert

PROCESSES = 2
AS_RECORDED = "as recorded"
REFERENCED = "with a reference"
EARLIER = "with earlier runs"

STATISTICS = (
    "length", "update.k3", "update.log_ppl_abs_diff", "update.log_ppl_diff:sd", "update.peak",
    "update.chi2", "old.k3", "rollout.k3", "rollout.log_ppl_abs_diff", "rollout.peak", "entropy",
    "ppl", "zero_variance", "reward_bias", "duplicates", "updates", "length_credit", "terse",
    "bare_stamp", "verdict_tag", "hedging",
)  # fmt: skip
"""What the effect rule and the rivals see of every role; ``:sd`` is the spread over the rows."""


@dataclass(frozen=True, slots=True)
class Job:
    """One recording to replay.

    Attributes:
        scenario: Name in the suite.
        place: Base and seed of the run.
        variants: Names in :data:`~benchmarks.detection.variants.VARIANTS`.
        reference: Another healthy recording of the same trunk whose start is the yardstick too;
            its findings are under the variant :data:`REFERENCED`.
        earlier: Earlier healthy recordings whose starts are yardsticks; under :data:`EARLIER`.
    """

    scenario: str
    place: Place
    variants: tuple[str, ...] = ("as recorded",)
    reference: tuple[str, Place] | None = None
    earlier: tuple[tuple[str, Place], ...] = ()


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a job.

    Attributes:
        workflow: Roles and policies.
        facts: What happened in the run.
        findings: Variant to what the detectors told.
        faults: Detectors that failed.
        open: Role and name of what still stood at the end, as recorded.
    """

    workflow: Workflow
    facts: Facts
    findings: Mapping[str, tuple[Finding, ...]]
    faults: Mapping[str, str]
    open: frozenset[tuple[str, str]] = frozenset()


def replay_all(jobs: Sequence[Job], processes: int = PROCESSES) -> list[Replayed]:
    """Replay recordings side by side, in the order given."""
    if processes < 2 or len(jobs) < 2:
        return [run_job(job) for job in jobs]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        return list(pool.map(run_job, jobs, chunksize=2))


def run_job(job: Job) -> Replayed:
    """Replay one recording in all variants asked for."""
    recording = load(job.scenario, job.place.seed, base=job.place.base)
    workflow, steps = recording.workflow, recording.steps
    results = {name: replay(VARIANTS[name](steps), workflow) for name in job.variants}
    standing = frozenset[tuple[str, str]]()
    if AS_RECORDED in results:
        standing = _open(results[AS_RECORDED].alerts)
    if job.reference is not None:
        name, place = job.reference
        other = load(name, place.seed, base=place.base)
        results[REFERENCED] = replay(steps, workflow, reference=other.steps)
    if len(job.earlier) >= LEAST_RUNS:
        runs = [load(name, place.seed, base=place.base).steps for name, place in job.earlier]
        results[EARLIER] = replay(steps, workflow, yardsticks=yardsticks_of(runs, workflow))
    findings = {name: alerts_of(result.alerts) for name, result in results.items()}
    faults = {name: why for result in results.values() for name, why in result.faults.items()}
    return Replayed(workflow, facts_of(recording), findings, faults, standing)


def _open(alerts: Iterable[Alert]) -> frozenset[tuple[str, str]]:
    last = {alert.id: alert for alert in alerts}
    return frozenset(
        (alert.role, alert.finding) for alert in last.values() if alert.state != "closed"
    )


def alerts_of(alerts: Iterable[Alert]) -> tuple[Finding, ...]:
    """Alerts as the benchmark counts them: each as it opened, and again as it escalated."""
    return tuple(
        Finding(alert.step, alert.role, alert.finding, alert.graded, alert.layer or "")
        for alert in alerts
        if alert.state != "closed"
    )


def facts_of(recording: Recording) -> Facts:
    """What the effect rule and the rivals need of a run."""
    series: dict[tuple[str, str], dict[int, float]] = {}
    for record in recording.steps:
        for role in recording.workflow.role_names:
            for name in STATISTICS:
                value = _value(record, role, name)
                if value is not None:
                    series.setdefault((role, name), {})[record.step] = value
        for name, value in _totals(record).items():
            series.setdefault(("*", name), {})[record.step] = value
    last = max(record.step for record in recording.steps)
    became = capture(recording) if recording.terse else ""
    return Facts(series, recording.validation, recording.problems, last, became)


def _value(record: StepRecord, role: str, name: str) -> float | None:
    name, _, part = name.partition(":")
    if not part:
        return record.mean(role, name)
    stat = record.stat(role, name)
    return None if stat is None else stat.sd


def _totals(record: StepRecord) -> dict[str, float]:
    totals = record.totals
    known = {
        name: value
        for name, value in totals.items()
        if name in ("accuracy", "reward", "lr", "grad_norm") or name.startswith("lr/")
    }
    if "accuracy" in totals and "reward" in totals:
        known["reward over accuracy"] = totals["reward"] - totals["accuracy"]
    return known
