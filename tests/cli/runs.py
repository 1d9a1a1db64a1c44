"""Little runs for the tests of the command line."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from roledrift.records import RunHeader, Stat, StepRecord
from roledrift.store.writer import RunWriter
from roledrift.workflow import VOTING

ALONE: dict[str, object] = {"false_alerts_per_run": 0.05, "findings": ["length_inflation"]}
"""Configuration of a loop that records lengths alone and is judged on those."""

HOSTILE = "\x1b[31m\x1b]0;owned\x07<script>"


def write_run(
    path: Path,
    steps: int = 30,
    *,
    inflate_from: int | None = None,
    until: int | None = None,
    lost: float = 0.0,
    name: str = "length",
    config: dict[str, object] | None = None,
) -> Path:
    """A voting run whose aggregator grows from ``inflate_from`` to ``until``, and gains nothing.

    Args:
        lost: Accuracy that is lost from the onset on.
    """
    header = RunHeader(run=path.name + HOSTILE, workflow=VOTING, config=config or ALONE)
    writer = RunWriter(path, header)
    for step in range(steps):
        inflated = inflate_from is not None and inflate_from <= step < (until or steps)
        short = 5.0 + 0.1 * (step % 3)
        groups = {
            "generator": {name: _length(40.0 + step % 2)},
            "aggregator": {name: _length(short * 4 if inflated else short)},
        }
        after = inflate_from is not None and step >= inflate_from
        totals = {"accuracy": 0.6 + 0.01 * (step % 3) - lost * after}
        writer.write_step(StepRecord(step=step, groups=groups, totals=totals))
    writer.close()
    return path


def _length(mean: float) -> Stat:
    return replace(
        Stat(16.0, mean), sd=0.5, low=mean - 1, high=mean + 1, p05=mean, p50=mean, p95=mean
    )


def crash_run(path: Path, last: float, steps: int = 20) -> Path:
    """A healthy run, a step every ten seconds, whose process was killed after ``last``."""
    writer = RunWriter(path, RunHeader(run=path.name, workflow=VOTING, config=ALONE))
    for step in range(steps):
        time = datetime.fromtimestamp(last - 10 * (steps - 1 - step), UTC).isoformat()
        groups = {
            "generator": {"length": _length(40.0 + step % 2)},
            "aggregator": {"length": _length(5.0 + 0.1 * (step % 3))},
        }
        writer.write_step(StepRecord(step=step, time=time, groups=groups))
    return path
