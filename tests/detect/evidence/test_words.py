"""Ways of writing, against a slow and obvious reference."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roledrift.detect.evidence.words import Writing, share_of_way, squared
from roledrift.records import Stat, StepRecord
from tests.detect.writing import STAMP, TERSE, WORK, profile, way


def slow_share(now: list[float], start: list[float], goal: list[float]) -> float:
    above = below = 0.0
    for p, a, g in zip(now, start, goal, strict=True):
        weight = 1 / (a + g + 1 / len(now))
        above += weight * (p - a) * (g - a)
        below += weight * (g - a) * (g - a)
    return above / below


def slow_squared(a: list[float], b: list[float]) -> float:
    return sum((x - y) ** 2 / (x + y + 1 / len(a)) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_the_formulas_agree_with_a_slow_reference(seed: int) -> None:
    start, goal, now = (way(3 * seed + i) for i in range(3))
    expected = slow_share(now.tolist(), start.tolist(), goal.tolist())
    assert share_of_way(now, start, goal) == pytest.approx(expected)
    assert squared(now, goal) == pytest.approx(slow_squared(now.tolist(), goal.tolist()))


def test_golden_values() -> None:
    start, goal, now = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.5, 0.5]), np.full(4, 0.25)
    assert share_of_way(now, start, goal) == pytest.approx(0.5)
    assert squared(start, goal) == pytest.approx(4 * 0.25 / 0.75)
    assert squared(start, start) == 0
    assert math.isnan(share_of_way(now, start, start))


@pytest.mark.parametrize("q", [0.0, 0.3, 1.0, -0.2])
def test_a_mixture_of_texts_has_gone_its_share_of_the_way(q: float) -> None:
    assert share_of_way((1 - q) * STAMP + q * WORK, STAMP, WORK) == pytest.approx(q)


def record(step: int, **shares: object) -> StepRecord:
    return StepRecord(step, groups={role: {"words": stat} for role, stat in shares.items()})  # type: ignore[dict-item]


def test_noise_of_few_words_is_the_same_within_the_start_and_after_it() -> None:
    """Leave-one-out: no record is compared with a start that holds it."""
    early: list[float] = []
    late: list[float] = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        writing = Writing(("a", "b"))
        for step in range(1, 13):
            both = {"a": profile(rng, [(1, STAMP)], 16, 6), "b": profile(rng, [(1, WORK)], 16, 6)}
            share = writing.share(record(step, **both), "a", "b")
            if share is not None and step in (3, 4):
                early.append(share)
            elif share is not None and step > 8:
                late.append(share)
    assert np.std(early) >= np.std(late)
    assert np.std(early) <= 1.25 * np.std(late)
    assert np.mean(late) == pytest.approx(np.mean(early), abs=0.02)


def test_the_distance_from_the_start_is_zero_in_expectation_while_nothing_changes() -> None:
    gone = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        writing = Writing(("a", "b"))
        for step in range(1, 13):
            both = {"a": profile(rng, [(1, WORK)], 16, 4), "b": profile(rng, [(1, STAMP)], 16, 4)}
            gone.append(writing.away(record(step, **both), "a"))
    known = [one for one in gone if one is not None]
    plain = squared(*(np.array(profile(rng, [(1, WORK)], 16, 4).shares) for _ in range(2))) / 2
    assert abs(float(np.mean(known))) < plain / 4


def test_a_captor_that_moves_off_is_followed_to_where_it_is() -> None:
    writing = Writing(("aggregator", "generator"))
    rng = np.random.default_rng(0)
    for step in range(1, 30):
        q = min(max((step - 8) / 8, 0), 1)
        writing.observe(
            record(
                step,
                generator=profile(rng, [(0.45 * (1 - q), TERSE), (0.55 + 0.45 * q, WORK)], 96, 12),
                aggregator=profile(rng, [(0.88 * (1 - q), TERSE), (0.12 + 0.88 * q, WORK)], 32, 12),
            )
        )
    share, straight = writing.captured("aggregator", "generator")
    assert share == pytest.approx(1, abs=0.05)
    assert straight > 0.95
    assert writing.toward("aggregator", "generator") > 1.3  # beyond where the generator began
    assert writing.toward("generator", "aggregator") < 0


@pytest.mark.parametrize(
    "stat",
    [
        None,
        Stat(0, 0.0, shares=(0.5, 0.5)),
        Stat(16, 4.0, shares=(math.nan, 0.5)),
        Stat(16, 4.0, shares=(-0.5, 0.5)),
        Stat(16, 4.0, shares=(0.0, 0.0)),
        Stat(16, 4.0, shares=(0.2, 0.3, 0.5)),
        Stat(16, 4.0),
    ],
)
def test_what_is_no_profile_is_passed_over(stat: Stat | None) -> None:
    writing = Writing(("a", "b"))
    fine = Stat(16, 4.0, shares=(0.7, 0.3))
    for step in range(1, 9):
        writing.observe(record(step, a=fine, b=Stat(16, 4.0, shares=(0.1, 0.9))))
    assert writing.share(record(9, **({"a": stat} if stat else {})), "a", "b") is None
    assert not writing.measured("a")
