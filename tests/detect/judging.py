"""Judges synthetic records by single detectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roledrift.detect.cards import Card
from roledrift.detect.suite import DetectorSuite
from roledrift.judgement import Alert, Verdict
from roledrift.records import Stat, StepRecord
from roledrift.workflow import Workflow


def judge(
    card: Card, records: Sequence[StepRecord], workflow: Workflow
) -> tuple[list[Alert], dict[str, Verdict]]:
    """All alerts, and the last verdict of every role; a detector that fails is an error."""
    suite = DetectorSuite(workflow, detectors=[card], rewinds=False)
    alerts = [alert for record in records for alert in suite.update(record)]
    assert not suite.faults, suite.faults
    return alerts, {verdict.role: verdict for verdict in suite.verdicts}


def found(alerts: Sequence[Alert]) -> set[tuple[str, str]]:
    """``(finding, role)`` of all alerts that opened."""
    return {(alert.finding, alert.role) for alert in alerts if alert.state == "open"}


def records(
    columns: Mapping[str, Mapping[str, Sequence[float | Stat | None] | Sequence[float]]],
    totals: Mapping[str, Sequence[float | None]] | None = None,
    *,
    n: float = 64,
) -> list[StepRecord]:
    """Records, from step 1, of ``{role: {statistic: values}}``; None was not measured."""
    series = [values for stats in columns.values() for values in stats.values()]
    steps = max(len(values) for values in series)
    made = []
    for t in range(steps):
        groups = {
            role: {
                name: value if isinstance(value, Stat) else Stat(n, float(value))
                for name, values in stats.items()
                if t < len(values) and (value := values[t]) is not None
            }
            for role, stats in columns.items()
        }
        summed = {
            name: float(value)
            for name, values in (totals or {}).items()
            if t < len(values) and (value := values[t]) is not None
        }
        made.append(StepRecord(step=t + 1, groups=groups, totals=summed))
    return made
