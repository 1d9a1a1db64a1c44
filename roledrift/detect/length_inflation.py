"""``length_inflation``: the answers of a role that should be short have grown.

It is the cheapest sign of trouble there is (token counts only) and the earliest that a person can
check by eye, so it is the one detector on which stopping a run makes sense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from roledrift.config import BaselineConfig, Config
from roledrift.detect.baseline import LENGTH, Baseline, Warmup, measured, more_steps
from roledrift.detect.sequential import Alarm, Cusum, chance_of, decision_for
from roledrift.records import State, StepRecord, Verdict
from roledrift.thresholds import LengthInflationConfig
from roledrift.workflow import Workflow

NAME = "length_inflation"
_STATISTIC = "length"


@dataclass(frozen=True, slots=True)
class _Growth:
    """One role's length in one record, against its own baseline and against the other roles."""

    tokens: float
    baseline: Baseline
    others: float | None

    @property
    def ratio(self) -> float:
        return self.baseline.ratio(self.tokens)


class LengthInflation:
    """Watches the mean length of some roles against their own start.

    Drift needs all of: length at ``drift_ratio`` times the baseline, ``floor`` tokens above it and
    farther from it than healthy records wander, for ``patience`` records; a completed CUSUM of
    standardised log-ratios; and ``contrast`` times the growth of the other roles (when every role
    grows alike, no role has drifted from its part). Or ``drift_at`` tokens for ``patience``
    records.

    Args:
        workflow: Roles; if none are configured the terse ones are watched, else all.
        config: Its section and the baseline.

    Raises:
        ConfigError: If a configured role is not in the workflow.
    """

    name = NAME
    reads = frozenset({"length"})

    def __init__(self, workflow: Workflow, config: Config) -> None:
        self._settings = config.detectors.length_inflation
        terse = tuple(role.name for role in workflow.roles if role.terse)
        for role in self._settings.roles:
            workflow.index(role)
        watched = self._settings.roles or terse or workflow.role_names
        self._warmups = {role: _warmup(config.baseline) for role in workflow.role_names}
        self._alarms = {role: _alarm(self._settings, config.close_after) for role in watched}

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per watched role that was measured in this record."""
        tokens = {role: measured(record.mean(role, _STATISTIC)) for role in self._warmups}
        growth = {
            role: warmup.baseline.ratio(value)
            for role, warmup in self._warmups.items()
            if warmup.baseline is not None and (value := tokens[role]) is not None
        }
        verdicts = []
        for role, alarm in self._alarms.items():
            warmup, value = self._warmups[role], tokens[role]
            if warmup.baseline is None:
                warmup.see(value)
                verdicts.append(_waiting(role, warmup))
            elif value is not None:
                others = [ratio for name, ratio in growth.items() if name != role]
                now = _Growth(value, warmup.baseline, median(others) if others else None)
                alongside = ", ".join(f"{k} x{v:.2f}" for k, v in growth.items() if k != role)
                verdicts.append(self._judge(role, record.step, now, alarm, alongside))
                warmup.learn(value, healthy=alarm.cusum.quiet)
        for role in self._warmups.keys() - self._alarms.keys():
            self._warmups[role].see(tokens[role])
        return verdicts

    def _judge(self, role: str, step: int, now: _Growth, alarm: Alarm, alongside: str) -> Verdict:
        settings, base = self._settings, now.baseline.typical
        threshold = max(
            settings.drift_ratio * base,
            base + settings.floor,
            settings.contrast * (now.others or 0.0) * base,
            now.baseline.believable,
        )
        if 0 < settings.drift_at < threshold:
            threshold = settings.drift_at
        watched = now.ratio >= settings.watch_ratio
        drifting = alarm.see(
            step,
            now.baseline.z(now.tokens),
            least=now.baseline.distance(max(settings.drift_ratio, now.baseline.believable / base)),
            effect=now.tokens >= threshold,
            clean=not watched,
            correlation=now.baseline.correlation,
        )
        if 0 < settings.drift_at <= now.tokens:
            drifting = alarm.persisted >= settings.patience
        state: State = "drift" if drifting else "watch" if watched else "ok"
        onset = alarm.cusum.onset if state != "ok" else None
        since = f" since step {onset}" if onset is not None else ""
        tokens = f"{base:.1f} -> {now.tokens:.1f} tokens"
        reason = f"answers x{now.ratio:.2f} of the baseline{since} ({tokens})"
        if alongside:
            reason += f"; other roles: {alongside}"
        if state == "watch":
            reason += "; " + _short_of_drift(now, threshold, alarm, settings)
        return Verdict(
            detector=NAME,
            role=role,
            state=state,
            finding=NAME if drifting else "",
            statistic=_STATISTIC,
            value=now.tokens,
            threshold=threshold,
            baseline=base,
            onset=onset,
            reason=reason,
            evidence=alarm.cusum.value,
            chance=chance_of(settings.false_alarms, alarm.cusum.decision),
        )


def _short_of_drift(
    now: _Growth, threshold: float, alarm: Alarm, settings: LengthInflationConfig
) -> str:
    """Which condition of drift does not hold, for a role that is only watched."""
    if now.tokens < threshold:
        alike = now.others is not None and now.ratio < settings.contrast * now.others
        if alike:
            return "the other roles have grown alike"
        wander = " (it wanders by as much)" if threshold <= now.baseline.believable else ""
        return f"drift begins at {threshold:.1f} tokens{wander}"
    if not alarm.cusum.complete:
        return f"evidence {alarm.cusum.value:.1f} of {alarm.cusum.decision:.1f}"
    return f"in {alarm.persisted} of {settings.patience} records in a row"


def _warmup(baseline: BaselineConfig) -> Warmup:
    return Warmup(baseline, LENGTH)


def _alarm(settings: LengthInflationConfig, forget_after: int) -> Alarm:
    cusum = Cusum(settings.reference, decision_for(settings.false_alarms))
    return Alarm(cusum, patience=settings.patience, forget_after=forget_after)


def _waiting(role: str, warmup: Warmup) -> Verdict:
    if not warmup.seen:
        return Verdict(
            NAME, role, "no verdict", reason="no lengths were measured", needs=(_STATISTIC,)
        )
    need = more_steps(warmup.lacks)
    if not warmup.lacks:
        need = "one step after the baseline"
    return Verdict(NAME, role, "no verdict", reason=f"needs {need}", needs=(need,))
