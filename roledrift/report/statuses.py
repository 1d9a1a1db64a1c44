"""How bad things are, in words: the states of cells, findings and runs, and their order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from roledrift.detect.conclusion import Outcome
from roledrift.judgement import Alert, Incident, Severity, Verdict

Status = Literal[
    "failing", "input problem", "suspicious", "watch", "no verdict", "ok", "clean", "closed", ""
]
"""A severity, or the state of a verdict or of a run without a finding, or nothing."""

STATUSES: tuple[Status, ...] = (
    "",
    "clean",
    "ok",
    "closed",
    "no verdict",
    "watch",
    "suspicious",
    "input problem",
    "failing",
)
"""From the least to the most urgent."""

Open = Mapping[tuple[str, str], Severity]
"""Detector and role to the severity of an alert that is open."""


def still_open(alerts: Iterable[Alert]) -> Open:
    """Find the alerts that have not closed, from transitions in order."""
    latest = {(alert.detector, alert.role): alert for alert in alerts}
    return {key: alert.graded for key, alert in latest.items() if alert.state != "closed"}


def status_of(verdict: Verdict, alerts: Open) -> Status:
    """Return the state of a verdict; while its alert is open, the severity of the alert."""
    severity = alerts.get((verdict.detector, verdict.role))
    if severity is not None:
        return severity
    return (verdict.severity or "suspicious") if verdict.state == "drift" else verdict.state


def urgency(outcome: Outcome | str, incident: Incident | None) -> tuple[int, bool, float]:
    """Sort key of a run: worst outcome first, then runs with damage, then earliest onset.

    Args:
        outcome: As :func:`roledrift.detect.conclusion.conclude` says; any other word comes last.
        incident: The incident that the outcome is about, if there is one.
    """
    worst = STATUSES[::-1].index(outcome) if outcome in STATUSES else len(STATUSES)
    onset = math.inf if incident is None else float(incident.onset)
    return worst, incident is None or not incident.damage, onset


def tally(outcomes: Iterable[str]) -> str:
    """How many runs ended how, the worst first: ``2 failing, 1 clean``."""
    counts = Counter(outcomes)
    return ", ".join(f"{counts[status]} {status}" for status in STATUSES[::-1] if counts[status])


def holds(incident: Incident, alert: Alert) -> bool:
    """True if the alert belongs to the incident."""
    return alert.id in incident.alerts


def incident_status(incident: Incident) -> Status:
    """Return the severity of an incident, or ``closed``."""
    return "closed" if incident.state == "closed" else incident.severity
