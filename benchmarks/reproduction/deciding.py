"""From results to answers: pairs, intervals, and the rules that the plan fixed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.reproduction.measures import MEASURES, Results, Value, measure
from benchmarks.reproduction.plan import Claim, Comparison
from reference_trainer.grid import SCALES, TASKS

Answer = Literal["holds", "does not hold", "cannot tell"]
Cell = tuple[str, str, str, str]
"""Task, scale, workflow and routing of a cell of the grid."""

CONFIDENCE = 0.95
LEAST_PAIRS = 5
LEAST_RUNS = 5
"""Runs of either kind that an area under the ROC curve needs."""

_RESAMPLES = 9999
_LEVEL = 0.05
_SMALL_INTERACTION = 0.10


@dataclass(frozen=True, slots=True)
class Found:
    """What a test found.

    Attributes:
        test: The test.
        n: Pairs, or runs.
        estimate: Mean difference, or the statistic; None without enough data for one.
        low: Lower bound of the 95 % interval; infinite without one.
        high: Upper bound.
        answer: By the rule of the plan.
        detail: The two sides, in words.
    """

    test: Comparison
    n: int
    estimate: float | None
    low: float
    high: float
    answer: Answer
    detail: str = ""


def decide(claim: Claim, results: Results) -> tuple[Answer, list[Found]]:
    """The answer to a claim, and what all of its tests found."""
    results_of_tests = [run_test(test, results) for test in claim.tests]
    answers = [result.answer for result in results_of_tests if result.test.decides]
    first, second = (
        ("does not hold", "holds") if claim.needs == "all" else ("holds", "does not hold")
    )
    if first in answers:
        return first, results_of_tests  # type: ignore[return-value]
    return (second if set(answers) == {second} else "cannot tell"), results_of_tests  # type: ignore[return-value]


def run_test(test: Comparison, results: Results) -> Found:
    """Carry out one test."""
    if test.kind == "auc":
        return _areas(test, results)
    if test.kind.startswith("interaction"):
        return _interaction(test, results)
    pairs = pairs_of(test, results)
    n = len(pairs)
    if n == 0:
        return Found(test, 0, None, -np.inf, np.inf, "cannot tell")
    shares = all(isinstance(value, bool) for pair in pairs for value in pair if value is not None)
    over = np.array([float(a) for a, _ in pairs])
    under = np.array([float(b) for _, b in pairs]) if test.under else np.zeros(n)
    low, high = _of_shares(over, under) if shares else _of_means(over - under)
    estimate = float((over - under).mean())
    answer = apply_rule(test, estimate, low, high) if n >= LEAST_PAIRS else "cannot tell"
    return Found(
        test, n, estimate, low, high, answer, _sides(over, under, shares=shares, test=test)
    )


def apply_rule(test: Comparison, estimate: float, low: float, high: float) -> Answer:
    """The rules at the head of the plan's claims."""
    delta = test.delta
    if test.rule == "above":
        if low > 0 and estimate >= delta:
            return "holds"
        return "does not hold" if high < delta else "cannot tell"
    within, outside = low > -delta and high < delta, low > delta or high < -delta
    if test.rule == "same":
        return "holds" if within else "does not hold" if outside else "cannot tell"
    if (low > 0 or high < 0) and abs(estimate) >= delta:
        return "holds"
    return "does not hold" if within else "cannot tell"


def reason(result: Found) -> str:
    """Why a test cannot tell, in words; empty if it can."""
    test = result.test
    if result.answer != "cannot tell":
        return ""
    if test.kind.startswith("interaction"):
        return "p > 0.05, but not small" if result.estimate is not None else "cells are missing"
    if test.kind == "auc" and result.estimate is None:
        return f"fewer than {LEAST_RUNS} runs of a kind"
    if test.kind == "paired" and result.n < LEAST_PAIRS:
        return f"fewer than {LEAST_PAIRS} pairs" if result.n else "no pairs"
    if test.rule == "same":
        return "the interval crosses delta"
    if result.low <= 0 <= result.high:
        return "the interval holds both 0 and delta"
    return "not 0, perhaps smaller than delta"


def pairs_of(test: Comparison, results: Results) -> list[tuple[Any, Any]]:
    """Values of ``over`` and ``under`` of the same base, seed and place in the lists."""
    pairs = []
    for number, pattern in enumerate(test.over):
        for (place, base, seed), row in sorted(results.rows.items()):
            match = _pattern(pattern).fullmatch(place)
            if not match:
                continue
            value = measure(test.measure, row, results)
            other: Value = None
            if test.under:
                words = iter(match.groups())
                twin = results.find(
                    re.sub(r"\*", lambda _, w=words: next(w), test.under[number]), base, seed
                )  # type: ignore[misc]
                other = None if twin is None else measure(test.measure, twin, results)
            if value is not None and (other is not None or not test.under):
                pairs.append((value, other))
    return pairs


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile("([^/]*)".join(map(re.escape, pattern.split("*"))))


def _of_shares(over: NDArray[np.float64], under: NDArray[np.float64]) -> tuple[float, float]:
    """Tango's score interval of a difference of paired shares.

    Tango 1998, "Equivalence test and confidence interval for the difference in proportions for
    the paired-sample design". With ``b`` and ``c`` pairs that differ one way and the other, it
    holds all ``d`` with ``|b - c - n d| <= z sqrt(n (2 q + d (1 - d)))``, where ``q`` is the most
    likely share of the second kind given ``d``.
    """
    n, b, c = len(over), int((over > under).sum()), int((over < under).sum())
    z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))

    def score(d: float) -> float:
        linear = -b - c + (2 * n - b + c) * d
        root = math.sqrt(max(linear**2 + 8 * n * c * d * (1 - d), 0.0))
        q = (root - linear) / (4 * n)
        spread = math.sqrt(max(n * (2 * q + d * (1 - d)), 0.0))
        return (b - c - n * d) / spread if spread > 0 else math.copysign(math.inf, b - c - n * d)

    middle = (b - c) / n
    low, high = (
        edge if abs(middle - edge) < 1e-12 else _where(score, sign * z, middle, edge)
        for edge, sign in ((-1.0, 1.0), (1.0, -1.0))
    )
    return low, high


def _where(score: Callable[[float], float], value: float, middle: float, edge: float) -> float:
    """Where a falling ``score``, 0 at ``middle``, takes ``value`` on the way to ``edge``."""
    inside, outside = middle, edge
    for _ in range(60):
        d = (inside + outside) / 2
        inside, outside = (inside, d) if abs(score(d)) > abs(value) else (d, outside)
    return inside


def _of_means(differences: NDArray[np.float64]) -> tuple[float, float]:
    n = len(differences)
    if n < 2:
        return -np.inf, np.inf
    if np.ptp(differences) < 1e-12:
        return float(differences[0]), float(differences[0])
    resampled = stats.bootstrap(
        (differences,), np.mean, n_resamples=_RESAMPLES, confidence_level=CONFIDENCE,
        method="BCa", rng=np.random.default_rng(0),
    )  # fmt: skip
    return float(resampled.confidence_interval.low), float(resampled.confidence_interval.high)


def _sides(
    over: NDArray[np.float64], under: NDArray[np.float64], *, shares: bool, test: Comparison
) -> str:
    if not test.under:
        return f"{over.mean():.3g}"
    if shares:
        return f"{int(over.sum())}/{len(over)} against {int(under.sum())}/{len(under)}"
    return f"{over.mean():.3g} against {under.mean():.3g}"


def area(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Area under the ROC curve: the share of pairs in the right order, ties count half."""
    positive, negative = scores[labels][:, None], scores[~labels]
    return float((positive > negative).mean() + (positive == negative).mean() / 2)


def _areas(test: Comparison, results: Results) -> Found:
    """Areas under the ROC curves of two measures for runs that fall, and their difference."""
    rows = [
        (MEASURES[test.measure](row), MEASURES[test.against](row), MEASURES["falls"](row))
        for (place, _, _), row in sorted(results.rows.items())
        if any(_pattern(pattern).fullmatch(place) for pattern in test.over)
    ]
    known = [row for row in rows if None not in row]
    ours, theirs = (np.array([float(row[i] or 0) for row in known]) for i in (0, 1))
    labels = np.array([bool(row[2]) for row in known], dtype=np.bool_)
    if min(labels.sum(), (~labels).sum()) < LEAST_RUNS:
        return Found(
            test, len(known), None, -np.inf, np.inf, "cannot tell",
            f"runs that fall: {int(labels.sum())}, that do not: {int((~labels).sum())}",
        )  # fmt: skip
    estimate = area(ours, labels) - area(theirs, labels)
    rng = np.random.default_rng(0)
    kinds = [np.flatnonzero(labels), np.flatnonzero(~labels)]
    draws = []
    for _ in range(_RESAMPLES // 5):
        chosen = np.concatenate([rng.choice(kind, len(kind)) for kind in kinds])
        draws.append(area(ours[chosen], labels[chosen]) - area(theirs[chosen], labels[chosen]))
    low, high = (float(bound) for bound in np.quantile(draws, [0.025, 0.975]))
    detail = f"{area(ours, labels):.2f} against {area(theirs, labels):.2f}"
    answer = apply_rule(test, estimate, low, high)
    return Found(test, len(known), estimate, low, high, answer, detail)


def _interaction(test: Comparison, results: Results) -> Found:
    """F test of the cells' gains against an additive model.

    Cells of one task and scale share their base models. Within bases, every base model has an
    effect of its own in both models, so its quality is no interaction.
    """
    cells: dict[Cell, list[tuple[int, float]]] = {}
    for (place, base, _), row in sorted(results.rows.items()):
        match = re.fullmatch(r"grid-(\w+)-(\w)/(\w+)-(sp|ip)", place)
        value = MEASURES[test.measure](row)
        if match and value is not None:
            cell: Cell = (match[1], match[2], match[3], match[4])
            cells.setdefault(cell, []).append((base, float(value)))
    full = {cell: values for cell, values in cells.items() if len(values) >= 2}
    kinds = [sorted({cell[i] for cell in full}) for i in range(4)]
    n = sum(map(len, full.values()))
    enough = (
        len(kinds[0]) == len(TASKS) and 2 <= len(kinds[1]) <= len(SCALES) and len(kinds[2]) == 3
    )
    if not enough or len(full) < np.prod([len(kind) for kind in kinds]):
        return Found(
            test, n, None, -np.inf, np.inf, "cannot tell", f"cells with two runs: {len(full)}"
        )
    runs = [(cell, base) for cell, values in full.items() for base, _ in values]
    y = np.array([value for values in full.values() for _, value in values])
    factors: list[list[object]] = [[cell[i] for cell, _ in runs] for i in range(4)]
    if test.kind == "interaction within bases":
        factors[:2] = [[(cell[0], cell[1], base) for cell, base in runs]]
    p, share = _gain_of_cells(y, factors, [cell for cell, _ in runs])
    answer: Answer = "holds" if p <= _LEVEL else "cannot tell"
    if p > _LEVEL and share < _SMALL_INTERACTION:
        answer = "does not hold"
    # No interval: the rule asks for p, and a share of the variance has none here.
    return Found(test, n, share, -np.inf, np.inf, answer, f"p = {p:.2g}")


def _gain_of_cells(
    y: NDArray[np.float64], factors: Sequence[Sequence[object]], cells: Sequence[Cell]
) -> tuple[float, float]:
    """F test of nested linear models: its p, and the share of variance that only cells explain."""
    additive = np.hstack([np.ones((len(y), 1)), *map(_indicators, factors)])
    by_cell = np.hstack([additive, _indicators(cells)])
    (left, few), (within, many) = (_residual(y, design) for design in (additive, by_cell))
    f = ((left - within) / (many - few)) / (within / (len(y) - many))
    share = (left - within) / float(np.sum((y - y.mean()) ** 2))
    return float(stats.f.sf(f, many - few, len(y) - many)), share


def _indicators(labels: Sequence[object]) -> NDArray[np.float64]:
    """A column per label: 1.0 where a row has it."""
    order = list(dict.fromkeys(labels))
    return np.array([[float(label == column) for column in order] for label in labels])


def _residual(y: NDArray[np.float64], design: NDArray[np.float64]) -> tuple[float, int]:
    """Sum of squares that a linear model leaves, and the model's rank."""
    fit, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    return float(np.sum((y - design @ fit) ** 2)), int(rank)


def answers(claims: Sequence[Claim], results: Results) -> list[tuple[Claim, Answer, list[Found]]]:
    """All claims with their answers."""
    return [(claim, *decide(claim, results)) for claim in claims]
