"""Alerts of a run, and the incidents that they make."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from roledrift.detect.incidents import Incidents
from roledrift.judgement import Alert, Incident, Layer, alert_id

LAYER: dict[str, Layer] = {
    "learning_rate_raised": "setting", "engine_mismatch": "input", "role_drift": "movement",
    "policy_drift": "movement", "length_inflation": "text", "accuracy_cliff": "outcome",
}  # fmt: skip


def make_alert(finding: str, role: str, step: int, onset: int | None = None, **other: Any) -> Alert:
    onset = step if onset is None else onset
    known: dict[str, Any] = {
        "policy": "p", "level": "ERROR", "state": "open", "severity": "failing",
        "title": f"{finding} of {role} since step {onset}", "text": f"Numbers of {finding}.",
        "layer": LAYER[finding], "advice": (f"mend {finding}",),
    }  # fmt: skip
    id_ = alert_id(finding, role, onset)
    return Alert(id_, finding, finding, role, step=step, onset=onset, **known | other)


def closed_alert(alert: Alert, step: int) -> Alert:
    return replace(alert, state="closed", step=step, level="INFO")


def story_of(*alerts: Alert) -> tuple[Incident, ...]:
    incidents = Incidents()
    for alert in alerts:
        incidents.update(alert.step, [alert])
    return incidents.incidents


MOVED = make_alert("role_drift", "generator", 20, 15)
LONGER = make_alert("length_inflation", "aggregator", 18, 16)
FALLEN = make_alert("accuracy_cliff", "*", 30, 24)
