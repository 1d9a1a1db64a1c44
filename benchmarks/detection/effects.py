"""What happened in a run, whoever noticed: effects against the healthy twin, and accuracy cliffs.

No threshold of a detector is in here. A fault has had an effect if the run differs from its healthy
twin (same base, trunk and seed, the same records before the onset) by more than chance explains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from benchmarks.detection.labels import Truth

LEVEL = 0.01
"""Chance of an effect in a run like its twin, for all its tests together."""

_ERRORS = 3.0
"""Standard errors that a fall of the validation accuracy must exceed."""

_LEAST_FALL = 0.1
"""And so much in any case."""

_LAST = 3
"""Validations at the end of a run that show its outcome."""

Series = Mapping[tuple[str, str], Mapping[int, float]]
"""``(role, statistic)`` -> step -> value; totals belong to the role ``"*"``."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the benchmark knows of a run besides alerts.

    Attributes:
        series: Statistics of the roles, totals.
        validation: Step to accuracy.
        problems: Of each validation.
        last: Last step.
        capture: What became of the texts of a natural run: ``lasting``, ``passing``, ``none``.
    """

    series: Series = field(default_factory=dict)
    validation: Mapping[int, float] = field(default_factory=dict)
    problems: int = 0
    last: int = 0
    capture: str = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """Whether a fault has had an effect.

    Attributes:
        moved: A statistic of a hit role is beyond what the twin does.
        harmed: The outcome is worse than the twin's.
    """

    moved: bool
    harmed: bool


def effect(truth: Truth, run: Facts, twin: Facts | None) -> Effect:
    """Compare a run with its healthy twin from the onset on.

    Statistics by the rank-sum test (neighbouring records of these runs are nearly uncorrelated),
    the outcome by the difference of the last validations in standard errors of one validation;
    all tests of a run share :data:`LEVEL`.
    """
    if twin is None:
        return Effect(moved=truth.certain, harmed=False)
    keys = [(role, name) for role in truth.roles for name in truth.moved if role != "*"]
    level = LEVEL / (len(keys) + 2)
    moved = any(_beyond(run, twin, key, truth.onset) < level for key in keys)
    return Effect(moved or truth.certain, worse(run, twin, truth.onset, level))


def worse(
    run: Facts, twin: Facts, onset: int, level: float = LEVEL / 2, *, training: bool = True
) -> bool:
    """Whether the outcome is worse than the twin's.

    Args:
        run: The run.
        twin: Its healthy twin.
        onset: First step that counts.
        level: Chance of a difference by chance, for each of the two tests.
        training: Look at the training accuracy too; not where the problems have become harder.
    """
    common = [step for step in sorted(run.validation) if step >= onset and step in twin.validation]
    last = common[-_LAST:]
    if last and run.problems:
        a = float(np.mean([run.validation[step] for step in last]))
        b = float(np.mean([twin.validation[step] for step in last]))
        error = math.sqrt(max(a * (1 - a) + b * (1 - b), 1e-4) / run.problems)
        if (b - a) / error > stats.norm.isf(level):
            return True
    if not training:
        return False
    key = ("*", "accuracy")
    own, twins = _paired(run, twin, key, onset)
    half = len(own) // 2
    return len(own) - half >= 5 and _rank_sum(twins[half:], own[half:]) < level


def _beyond(run: Facts, twin: Facts, key: tuple[str, str], onset: int) -> float:
    """How likely chance alone puts ``run`` so far above ``twin``."""
    own, twins = _paired(run, twin, key, onset)
    return _rank_sum(own, twins) if len(own) >= 5 else 1.0


def _paired(
    run: Facts, twin: Facts, key: tuple[str, str], onset: int
) -> tuple[list[float], list[float]]:
    own, twins = run.series.get(key, {}), twin.series.get(key, {})
    steps = [step for step in sorted(own) if step >= onset and step in twins]
    return [own[step] for step in steps], [twins[step] for step in steps]


def _rank_sum(high: Sequence[float], low: Sequence[float]) -> float:
    if len(set(high) | set(low)) < 2:
        return 1.0
    return float(stats.mannwhitneyu(high, low, alternative="greater").pvalue)


def cliff_of(run: Facts, onset: int) -> int | None:
    """First validation from ``onset`` on that has fallen off the best one before it.

    A fall is more than three standard errors of the difference, and at least a tenth. The next
    validation must have fallen as well; the last one, which has none, must have fallen twice as
    far.
    """
    steps = sorted(run.validation)
    values = [run.validation[step] for step in steps]
    for i, step in enumerate(steps[1:], start=1):
        best = max(values[:i])
        falls = [_fall(best, value, run.problems) for value in values[i : i + 2]]
        if step >= onset and min(falls) > (1 if len(falls) == 2 else 2):
            return step
    return None


def _fall(best: float, value: float, n: int) -> float:
    """How many times the smallest fall that counts ``value`` is below ``best``."""
    error = math.sqrt((best * (1 - best) + value * (1 - value)) / n)
    return (best - value) / max(_ERRORS * error, _LEAST_FALL)
