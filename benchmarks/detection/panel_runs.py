"""The panel's view of a recorded run."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.detection.judging import Finding
from benchmarks.detection.recordings import Recording
from roledrift import Alert, Config
from roledrift.config import BaselineConfig
from roledrift.detect.panel import Replay, replay


def replayed(recording: Recording) -> Replay:
    """All detectors with their defaults; the baseline is where the run had it."""
    baseline = BaselineConfig(**recording.config["baseline"])
    return replay(recording.steps, recording.workflow, replace(Config(), baseline=baseline))


def findings(recording: Recording) -> list[Finding]:
    """Alerts as they opened or escalated."""
    return [_finding(one) for one in replayed(recording).alerts if one.state != "closed"]


def _finding(alert: Alert) -> Finding:
    sure = alert.level == "ERROR"
    return Finding(alert.step, alert.role, alert.finding, "ERROR" if sure else "WARN")
