"""Simple rules on the same recordings, each with a threshold per series, chosen on tune runs.

A rule is a handful of lines. A line watches one statistic of every role in one form: the median of
the last records over the run's own start, a cumulative sum, or the plain value. Its threshold is
what only ``k`` of the healthy runs for tuning exceed, with the largest ``k`` at which the whole
rule raises no more false alarms than our detectors do on the same runs and the same scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.detection.effects import Facts
from benchmarks.detection.judging import Finding

FIRST, LAST = 3, 11
"""Records that are the start of a run: after the learning rate's warm-up of the recordings."""

Scores = NDArray[np.float64]
Form = Callable[[Scores], Scores]
"""A series to how suspicious it is at every record; the start itself is never suspicious."""


@cache
def over_start(window: int) -> Form:
    """Logarithm of the median of the last records over that of the start."""

    def form(values: Scores) -> Scores:
        logs = np.log(np.maximum(values, 1e-12))
        return _rolling(logs, window) - np.median(logs[FIRST:LAST])

    return form


def above_start(values: Scores) -> Scores:
    """The median of the last three records minus that of the start."""
    return _rolling(values, 3) - np.median(values[FIRST:LAST])


def changed(values: Scores) -> Scores:
    """By what factor the value differs from that of the start, either way."""
    logs = np.log(np.maximum(values, 1e-12))
    return np.abs(logs - np.median(logs[FIRST:LAST]))


def itself(values: Scores) -> Scores:
    """The plain value."""
    return values


def vanishes(values: Scores) -> Scores:
    """How far the value has vanished, in orders of magnitude below one."""
    return -np.log10(np.maximum(values, 1e-30))


def cusum(values: Scores) -> Scores:
    """Cumulative sum of standardised logarithms, either way, beyond half a standard deviation."""
    positive = bool((values > 0).all())
    series = np.log(values) if positive else values
    start = series[FIRST:LAST]
    spread = max(float(np.std(start, ddof=1)), 0.05 if positive else 1e-3)
    z = np.clip((series - np.median(start)) / spread, -10, 10)
    up = down = 0.0
    sums = np.zeros(len(z))
    for i in range(LAST, len(z)):
        up, down = max(0.0, up + z[i] - 0.5), max(0.0, down - z[i] - 0.5)
        sums[i] = max(up, down)
    return sums


def page_hinkley(values: Scores) -> Scores:
    """Page-Hinkley: how far the cumulative deviation from the running mean is off its extremes."""
    positive = bool((values > 0).all())
    series = np.log(values) if positive else values
    spread = max(float(np.std(series[FIRST:LAST], ddof=1)), 0.05 if positive else 1e-3)
    means = np.cumsum(series) / np.arange(1, len(series) + 1)
    z = np.clip((series - means) / spread, -10, 10)
    up, down = np.cumsum(z - 0.5), np.cumsum(z + 0.5)
    return np.maximum(up - np.minimum.accumulate(up), np.maximum.accumulate(down) - down)


def _rolling(values: Scores, window: int) -> Scores:
    medians = np.full(len(values), -np.inf)
    for i in range(LAST, len(values)):
        medians[i] = np.median(values[max(0, i - window + 1) : i + 1])
    return medians


_SCORES: dict[tuple[int, str, Form], tuple[Facts, dict[str, tuple[list[int], Scores]]]] = {}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a rule.

    Attributes:
        statistic: What it watches, of every role or of the totals.
        form: How.
        name: What an alarm of it is called.
    """

    statistic: str
    form: Form
    name: str

    def scores(self, facts: Facts) -> dict[str, tuple[list[int], Scores]]:
        """Role to steps and scores."""
        key = (id(facts), self.statistic, self.form)
        if key not in _SCORES:
            # The facts are kept too: an id is only an object's own while it lives.
            _SCORES[key] = (
                facts,
                {
                    role: (list(points), self._of(np.array(list(points.values()))))
                    for (role, statistic), points in facts.series.items()
                    if statistic == self.statistic and len(points) > LAST + 2
                },
            )
        return _SCORES[key][1]

    def _of(self, values: Scores) -> Scores:
        scores = self.form(values)
        scores[:LAST] = -np.inf
        return np.nan_to_num(scores, nan=-np.inf, posinf=np.inf, neginf=-np.inf)


@dataclass(frozen=True, slots=True)
class Rival:
    """A rule.

    Attributes:
        name: For tables.
        lines: Its lines.
    """

    name: str
    lines: tuple[Line, ...]

    def tuned(self, healthy: Sequence[Facts], allowed: float) -> Tuned:
        """The most sensitive thresholds at no more than ``allowed`` false alarms per run."""
        highest = np.array(
            [
                [
                    max((float(s.max()) for _, s in line.scores(run).values()), default=-np.inf)
                    for line in self.lines
                ]
                for run in healthy
            ]
        )
        ordered = -np.sort(-highest, axis=0)
        chosen = ordered[0]
        for thresholds in ordered:
            alarms = float((highest > thresholds).any(axis=1).mean())
            if alarms > allowed:
                break
            chosen = thresholds
        return Tuned(self, tuple(float(scenario) for scenario in chosen))


@dataclass(frozen=True, slots=True)
class Tuned:
    """A rule with its thresholds.

    Attributes:
        rival: The rule.
        thresholds: One per line.
    """

    rival: Rival
    thresholds: tuple[float, ...]

    def findings(self, facts: Facts) -> tuple[Finding, ...]:
        """The first alarm of every line about every role."""
        findings = []
        for line, threshold in zip(self.rival.lines, self.thresholds, strict=True):
            for role, (steps, scores) in line.scores(facts).items():
                places = np.flatnonzero(scores > threshold + 1e-9)
                if len(places):
                    findings.append(Finding(steps[int(places[0])], role, line.name))
        return tuple(sorted(findings, key=lambda finding: finding.step))


_TWO = (
    Line("update.k3", over_start(5), "role_drift"),
    Line("length", over_start(3), "length_inflation"),
)
_FIVE = (
    *_TWO,
    Line("reward_bias", above_start, "reward_hacking"),
    Line("rollout.peak", over_start(3), "adapter_not_served"),
    Line("duplicates", itself, "duplicate_rows"),
    Line("update.k3", vanishes, "no_updates"),
)
_RATIOS: Mapping[str, str] = {
    "length": "length_inflation", "entropy": "entropy_explosion", "ppl": "role_drift",
    "update.k3": "role_drift", "update.log_ppl_abs_diff": "role_drift",
    "update.log_ppl_diff:sd": "role_drift", "update.peak": "role_drift", "old.k3": "role_drift",
    "rollout.k3": "adapter_not_served", "rollout.log_ppl_abs_diff": "adapter_not_served",
    "rollout.peak": "adapter_not_served",
}  # fmt: skip
_LEVELS: Mapping[str, str] = {
    "reward_bias": "reward_hacking", "reward over accuracy": "reward_hacking",
    "length_credit": "reward_hacking", "duplicates": "duplicate_rows",
    "zero_variance": "signal_loss", "terse": "sp_role_capture", "bare_stamp": "sp_role_capture",
    "verdict_tag": "sp_role_capture", "hedging": "sp_role_capture",
}  # fmt: skip
_CHANGES: Mapping[str, str] = {"lr": "learning_rate", "updates": "optimizer_steps"}


def _all_series(ratio: Form, level: Form, change: Form | None) -> tuple[Line, ...]:
    """A line per statistic; without ``change``, settings are left out."""
    forms: list[tuple[Mapping[str, str], Form]] = [(_RATIOS, ratio), (_LEVELS, level)]
    if change is not None:
        forms.append((_CHANGES, change))
    return tuple(
        Line(statistic, form, name) for names, form in forms for statistic, name in names.items()
    )


RIVALS = (
    Rival("two lines: k3, length", _TWO),
    Rival("five lines: + reward_bias, rollout.peak, duplicates or no updates", _FIVE),
    Rival("six lines: + learning rate", (*_FIVE, Line("lr", changed, "learning_rate"))),
    Rival("every series over its start", _all_series(over_start(5), above_start, changed)),
    Rival("every symptom over its start", _all_series(over_start(5), above_start, None)),
    Rival("CUSUM on every series", _all_series(cusum, cusum, cusum)),
    Rival("CUSUM on every symptom", _all_series(cusum, cusum, None)),
    Rival("Page-Hinkley on every series", _all_series(page_hinkley, page_hinkley, page_hinkley)),
    Rival("Page-Hinkley on every symptom", _all_series(page_hinkley, page_hinkley, None)),
    Rival("k3 itself", (Line("update.k3", itself, "role_drift"),)),
)
