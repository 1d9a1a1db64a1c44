"""The rivals' thresholds, chosen on the seeds for tuning at our own rate of false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.detection.judging import Outcome, Score, judge, score
from benchmarks.detection.recordings import Recording
from benchmarks.detection.rivals import SETS, Rival
from benchmarks.detection.suite import Scenario

LEAST_RATE = 1 / 20
"""False alarms per healthy run that a rival may always have."""

Run = tuple[Scenario, Recording]


@dataclass(frozen=True, slots=True)
class Tuned:
    """A rival with its settings.

    Attributes:
        rival: The method.
        statistics: Name of the set of statistics that it watches.
        threshold: Its threshold.
    """

    rival: Rival
    statistics: str
    threshold: float

    def outcomes(self, runs: Sequence[Run], *, onset: int) -> list[Outcome]:
        """Every run, judged."""
        return [
            judge(
                scenario,
                recording,
                self.rival.findings(recording, SETS[self.statistics], self.threshold),
                onset=onset,
            )
            for scenario, recording in runs
        ]


def tune(rival: Rival, runs: Sequence[Run], *, onset: int, steps: int, rate: float) -> Tuned:
    """The settings that find most at ``rate`` false alarms per healthy run.

    Of all sets of statistics and thresholds that keep to the rate on ``runs``: most failures with
    the right role, then most with the right name. Without any that keeps to it: the least false
    alarms.
    """
    allowed: list[tuple[tuple[float, float, float], Tuned]] = []
    others: list[tuple[float, Tuned]] = []
    for statistics in SETS:
        # From the least sensitive on, until the alarms are too many.
        for threshold in reversed(rival.thresholds):
            candidate = Tuned(rival, statistics, threshold)
            result = score(candidate.outcomes(runs, onset=onset), steps=steps)
            if (result.errors or 0.0) > rate:
                others.append((result.errors or 0.0, candidate))
                break
            allowed.append((_worth(result), candidate))
    if allowed:
        return max(allowed, key=lambda one: one[0])[1]
    return min(others, key=lambda one: one[0])[1]


def _worth(result: Score) -> tuple[float, float, float]:
    return (result.recall_role or 0.0, result.recall_name or 0.0, -(result.early_errors or 0.0))
