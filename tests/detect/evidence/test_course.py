"""What training has bought: rising, level, falling, and in words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roledrift.detect.evidence.course import Course, outcome
from roledrift.records import Stat, StepRecord


def _course(values: list[float], name: str = "accuracy") -> Course:
    course = Course()
    for step, value in enumerate(values):
        course.observe(StepRecord(step, totals={name: value}))
    return course


def _line(start: float, end: float, steps: int = 60, seed: int = 0) -> list[float]:
    rng = np.random.default_rng(seed)
    return list(rng.binomial(128, np.linspace(start, end, steps)) / 128)


@pytest.mark.parametrize(
    ("start", "end", "direction"),
    [(0.3, 0.7, "rose"), (0.5, 0.5, "level"), (0.8, 0.2, "fell"), (0.0, 0.0, "level")],
)
def test_directions(start: float, end: float, direction: str) -> None:
    for seed in range(5):
        course = _course(_line(start, end, seed=seed))
        assert course.direction == direction
        assert course.losing == (direction == "fell")
        assert bool(course.damage) == (direction == "fell")


def test_too_little_is_unknown() -> None:
    assert _course([0.5] * 5).direction == "unknown"
    assert str(_course([])) == "no accuracy or reward known"
    assert math.isnan(_course([]).now)
    assert not _course([]).improving


def test_rising_now_is_improving_and_having_risen_is_not() -> None:
    assert _course(_line(0.2, 0.9, 20)).improving
    assert not _course([*_line(0.2, 0.9, 20), *_line(0.9, 0.9, 20)]).improving


def test_the_source_stays_the_first_one() -> None:
    course = _course(_line(0.5, 0.5))
    course.observe(StepRecord(99, totals={"reward": 1e6}))
    assert course.source == "accuracy"
    assert course.now < 1


def test_validations_decide_whether_anything_is_lost() -> None:
    course = _course(_line(0.8, 0.2))
    for step, value in ((60, 0.6), (70, 0.62)):
        course.observe(StepRecord(step, totals={"val_accuracy": value, "val_n": 200}))
    assert not course.losing
    course.observe(StepRecord(80, totals={"val_accuracy": 0.1, "val_n": 200}))
    assert course.losing
    assert course.damage == ("validation accuracy has fallen from 0.62 (step 70) to 0.10 (step 80)")


def test_a_few_problems_fewer_of_thirty_are_no_loss() -> None:
    course = Course()
    for step, value in enumerate((15 / 30, 11 / 30)):
        course.observe(StepRecord(step, totals={"val_accuracy": value, "val_n": 30}))
    assert not course.losing


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308])
def test_what_is_no_number_is_passed_over(value: float) -> None:
    course = _course([0.5] * 10 + [value] * 10)
    assert course.now == pytest.approx(0.5)
    assert outcome(StepRecord(0, totals={"accuracy": value})) == ("", None)


def test_sources_of_the_outcome_in_order() -> None:
    groups = {"*": {"reward": Stat(8, 0.4)}}
    assert outcome(StepRecord(0, groups=groups)) == (
        "reward", 0.4
    )  # fmt: skip
    assert outcome(StepRecord(0, groups=groups, totals={"accuracy": 0.2})) == ("accuracy", 0.2)
    assert outcome(StepRecord(0, totals={"reward": 0.3})) == ("reward", 0.3)
    assert outcome(StepRecord(0)) == ("", None)
