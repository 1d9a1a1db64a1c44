"""Statistics for the experiment logs that a trainer already keeps (wandb, trackio, ...)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from roledrift.gram import norms
from roledrift.judgement import Alert, Incident
from roledrift.notify.logbooks import logbook
from roledrift.records import Sample, StepRecord

FORWARDED = (
    *("length", "truncated", "reward", "zero_variance", "ppl", "entropy", "clip_fraction"),
    *("update.k3", "update.chi2", "old.chi2", "rollout.chi2", "reference.k3"),
)
"""Statistics that go to the host's own reporters; few, and their names are stable."""


class StatisticsLog:
    """A :class:`roledrift.protocols.Sink` that pools records until the host logs.

    Hosts log every so many steps; what they get is the mean over the steps in between, weighted as
    the statistics themselves are.

    Args:
        roles: Roles whose statistics are passed on, as ``roledrift/<role>/<statistic>``.
    """

    def __init__(self, roles: Sequence[str]) -> None:
        self._roles = roles
        self._pooled: dict[str, tuple[float, float]] = {}

    def write_step(self, record: StepRecord) -> None:
        """Pool the record's statistics with those before it."""
        for role in self._roles:
            for name in FORWARDED:
                stat = record.stat(role, name)
                if stat is not None and stat.n and math.isfinite(stat.mean):
                    self._add(f"roledrift/{role}/{name}", stat.n, stat.n * stat.mean)
        for gram in record.gradients:
            for label, norm in zip(gram.labels, norms(gram).tolist(), strict=True):
                if math.isfinite(norm):
                    self._add(f"roledrift/{label}/grad_norm", 1.0, norm)

    def _add(self, name: str, n: float, total: float) -> None:
        before = self._pooled.get(name, (0.0, 0.0))
        self._pooled[name] = (before[0] + n, before[1] + total)

    def write_alert(self, alert: Alert) -> None:
        """Single alerts are not passed on."""

    def write_incident(self, incident: Incident) -> None:
        """Incidents reach people through notifiers."""

    def write_samples(self, step: int, samples: Sequence[Sample]) -> None:
        """Texts stay in the run directory."""

    def close(self) -> None:
        """Nothing is held open."""

    def take(self) -> dict[str, float]:
        """Return the means over the steps since the last call."""
        pooled, self._pooled = self._pooled, {}
        return {name: total / n for name, (n, total) in pooled.items()}


class MetricLogger(StatisticsLog):
    """A :class:`roledrift.protocols.Sink` that logs the statistics of every step, for own loops.

    Args:
        roles: As for :class:`StatisticsLog`.
        places: Names such as ``wandb``, or a TensorBoard ``SummaryWriter``; see
            :func:`roledrift.notify.logbooks.logbook`.

    Raises:
        ConfigError: If a place is unknown.
    """

    def __init__(self, roles: Sequence[str], *places: Any) -> None:
        super().__init__(roles)
        self._logbooks = tuple(logbook(place) for place in places)

    def write_step(self, record: StepRecord) -> None:
        """Log the record's statistics under its step."""
        super().write_step(record)
        values = self.take()
        for tracker in self._logbooks if values else ():
            tracker.log(values, record.step)

    def write_incident(self, incident: Incident) -> None:
        """Log the incident where no notifier brings it."""
        for tracker in self._logbooks:
            tracker.incident(incident)
