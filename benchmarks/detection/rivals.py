"""Other ways to find a change in the same series, and what their alarms would be called.

All of them see, per role, the length, how far the update moved the policy (k3, chi²), perplexity,
entropy, and the shares of texts with a shape. They get them as our own detectors do: on a log scale
where ratios are compared, in robust standard deviations of the run's own baseline, so that one
threshold fits all series. Only the naive rule sees raw values, as a ratio to the first one. An
alarm is named after the series that it came from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import ruptures
from river.drift import ADWIN, KSWIN, PageHinkley

from benchmarks.detection.judging import Finding
from benchmarks.detection.recordings import Recording
from roledrift.detect.baseline import LENGTH, MOVEMENT, SHARE, Scale, baseline_of

SCALES: Mapping[str, Scale] = {
    "length": LENGTH,
    "update.k3": MOVEMENT,
    "update.chi2": MOVEMENT,
    "ppl": LENGTH,
    "entropy": LENGTH,
    "terse": SHARE,
    "boxed": SHARE,
    "bare_stamp": SHARE,
    "verdict_tag": SHARE,
    "hedging": SHARE,
}
"""Statistic to the scale on which it is compared."""

SETS: Mapping[str, tuple[str, ...]] = {
    "all": tuple(SCALES),
    "length and k3": ("length", "update.k3"),
    "length": ("length",),
    "k3": ("update.k3",),
    "no entropy, no perplexity": tuple(one for one in SCALES if one not in ("ppl", "entropy")),
}
"""Which statistics a rival watches; the best choice is part of its tuning."""

_BASELINE = (3, 11)
"""Records of the baseline, from and up to, counted from 0: after the learning rate's warm-up."""

_NAMES = {"length": "length_inflation", "entropy": "entropy_collapse"}
_MOVED = ("update.k3", "update.chi2", "ppl")


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One statistic of one role.

    Attributes:
        role: The role.
        statistic: Its name.
        steps: Iterations.
        raw: Values.
        z: In robust standard deviations of the baseline.
        shared: Whether the role shares its policy.
    """

    role: str
    statistic: str
    steps: tuple[int, ...]
    raw: tuple[float, ...]
    z: tuple[float, ...]
    shared: bool

    @property
    def name(self) -> str:
        """What an alarm in it is called."""
        if self.statistic in _MOVED:
            return "role_drift"
        return _NAMES.get(self.statistic, "sp_role_capture" if self.shared else "length_inflation")


@cache
def _series(recording_key: tuple[str, int], statistic: str) -> tuple[Series, ...]:
    recording = _KNOWN[recording_key]
    found = []
    for role in recording.workflow.role_names:
        pairs = [
            (one.step, value)
            for one in recording.steps
            if (value := one.mean(role, statistic)) is not None and not math.isnan(value)
        ]
        first, last = _BASELINE
        if len(pairs) <= last + 2:
            continue
        steps, raw = zip(*pairs, strict=True)
        baseline = baseline_of(list(raw[first:last]), SCALES[statistic])
        z = tuple(float(np.clip(baseline.z(one), -50, 50)) for one in raw)
        shared = bool(recording.workflow.sharing(role))
        found.append(Series(role, statistic, steps, raw, z, shared))
    return tuple(found)


_KNOWN: dict[tuple[str, int], Recording] = {}


def series_of(recording: Recording, statistics: Sequence[str]) -> list[Series]:
    """The series of a run that were measured."""
    key = (recording.scenario, recording.seed)
    _KNOWN[key] = recording
    return [one for statistic in statistics for one in _series(key, statistic)]


Alarm = Callable[[Series, float], int | None]
"""A rival: the place of the first alarm in a series at a threshold, None without one."""


def adwin(series: Series, threshold: float) -> int | None:
    """ADWIN; ``threshold`` is its delta. Asked at every record: runs are short."""
    detector = ADWIN(delta=threshold, clock=1, min_window_length=3, grace_period=8)
    return _first(detector, series)


def page_hinkley(series: Series, threshold: float) -> int | None:
    """Page-Hinkley; ``threshold`` is its lambda, in standard deviations."""
    detector = PageHinkley(min_instances=_BASELINE[1], delta=0.5, threshold=threshold, alpha=1.0)
    return _first(detector, series)


def kswin(series: Series, threshold: float) -> int | None:
    """KSWIN; ``threshold`` is its alpha."""
    detector = KSWIN(alpha=threshold, window_size=14, stat_size=5, seed=0)
    return _first(detector, series)


def pelt(series: Series, threshold: float) -> int | None:
    """PELT with an L2 cost on the whole run, so with knowledge of its future."""
    signal = np.array(series.z)
    ends = ruptures.Pelt(model="l2", min_size=3, jump=1).fit(signal).predict(pen=threshold)
    return int(ends[0]) if len(ends) > 1 else None


def binary_segmentation(series: Series, threshold: float) -> int | None:
    """Binary segmentation with an L2 cost on the whole run."""
    signal = np.array(series.z)
    ends = ruptures.Binseg(model="l2", min_size=3, jump=1).fit(signal).predict(pen=threshold)
    return int(ends[0]) if len(ends) > 1 else None


def times_the_first(series: Series, threshold: float) -> int | None:
    """``k`` times the first value, or the k-th part of it."""
    first = abs(series.raw[0])
    for place, value in enumerate(series.raw):
        if max(abs(value), 1e-9) > threshold * max(first, 1e-9):
            return place
        if max(abs(value), 1e-9) * threshold < first:
            return place
    return None


def _first(detector: ADWIN | PageHinkley | KSWIN, series: Series) -> int | None:
    for place, value in enumerate(series.z):
        detector.update(value)
        if detector.drift_detected:
            return place
    return None


@dataclass(frozen=True, slots=True)
class Rival:
    """Another method.

    Attributes:
        name: For tables.
        alarm: The method.
        thresholds: To choose from, most sensitive first.
        offline: Whether it sees the whole run before it says anything: then its step is where it
            puts the change, not when it could have told it.
    """

    name: str
    alarm: Alarm
    thresholds: tuple[float, ...]
    offline: bool = False

    def findings(
        self, recording: Recording, statistics: Sequence[str], threshold: float
    ) -> list[Finding]:
        """The first alarm in each series."""
        found = []
        for series in series_of(recording, statistics):
            place = _place(self.alarm, series, threshold)
            if place is not None:
                found.append(Finding(series.steps[place], series.role, series.name))
        return found


@cache
def _place(alarm: Alarm, series: Series, threshold: float) -> int | None:
    """Sets of statistics overlap: every series is asked once."""
    return alarm(series, threshold)


def _falling(high: float, low: float, n: int) -> tuple[float, ...]:
    return tuple(float(x) for x in np.geomspace(high, low, n))


RIVALS = (
    Rival("river ADWIN", adwin, _falling(0.9, 1e-6, 9)),
    Rival("river Page-Hinkley", page_hinkley, _falling(4.0, 500.0, 13)),
    Rival("river KSWIN", kswin, _falling(1e-2, 1e-4, 3)),
    Rival("ruptures PELT (offline)", pelt, _falling(5.0, 20000.0, 11), offline=True),
    Rival("ruptures Binseg (offline)", binary_segmentation, _falling(5.0, 20000.0, 11), True),
    Rival("k x first value", times_the_first, _falling(1.2, 1000.0, 25)),
)
