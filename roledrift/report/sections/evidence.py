"""The curves that show a finding: what its detector judged, for all roles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from roledrift.judgement import Alert
from roledrift.measure.catalogue import statistics
from roledrift.report.judged_run import REWARD, VALIDATION, JudgedRun
from roledrift.report.sections.names import statistic_name
from roledrift.sums import EVERYONE

_RATE = "lr"
_FACTOR = "factor"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The curves behind a finding.

    Attributes:
        title: What the curves are, with their unit.
        curves: Role (or ``*``) to step to value; empty if nothing was kept.
        limit: Step to the threshold, where the detector has one.
    """

    title: str
    curves: Mapping[str, Mapping[int, float]]
    limit: Mapping[int, float]
    log: bool = False
    share: bool = False


def evidence_of(run: JudgedRun, alert: Alert) -> Evidence:
    """Find the curves of an alert's statistic; if it was not recorded, what the detector judged."""
    name = _source(alert)
    known = statistics().get(name)
    title = statistic_name(name) if known is None else known.heading(run.length_unit)
    curves = _recorded(run, alert, name) or _judged(run, alert)
    series = run.replay.series.get((alert.detector, alert.role), ())
    return Evidence(
        title[:1].upper() + title[1:],
        curves,
        {step: float(edge) for step, _, edge in series if edge is not None},
        log=known is not None and known.log,
        share=known is not None and known.share,
    )


def _source(alert: Alert) -> str:
    """Name of the statistic that shows it; a changed setting is shown by the setting itself."""
    if alert.statistic == _FACTOR:
        return _RATE
    return alert.statistic or REWARD


def _recorded(run: JudgedRun, alert: Alert, name: str) -> dict[str, dict[int, float]]:
    if name == VALIDATION:
        return {EVERYONE: run.validation} if run.validation else {}
    if name == _RATE:
        own = {role: run.total(f"{_RATE}/{role}") for role in run.roles}
        return {role: curve for role, curve in own.items() if curve} or _of_step(run, name)
    if alert.role == EVERYONE:
        return _of_step(run, name)
    curves = {role: run.curve(role, name) for role in run.roles}
    return (
        {role: curve for role, curve in curves.items() if curve} if curves.get(alert.role) else {}
    )


def _of_step(run: JudgedRun, name: str) -> dict[str, dict[int, float]]:
    curve = run.total(name) or run.curve(EVERYONE, name)
    return {EVERYONE: curve} if curve else {}


def _judged(run: JudgedRun, alert: Alert) -> dict[str, dict[int, float]]:
    """What the detector judged; of all roles together it is on another scale than of each."""
    units = (EVERYONE,) if alert.role == EVERYONE else run.roles
    curves = {}
    for unit in units:
        series = run.replay.series.get((alert.detector, unit), ())
        curve = {step: math.nan if value is None else float(value) for step, value, _ in series}
        if curve:
            curves[unit] = curve
    return curves if alert.role in curves else {}
