from __future__ import annotations

import math

import numpy as np
import pytest

from roledrift.config import BaselineConfig
from roledrift.detect.payoff import Payoff, outcome
from roledrift.records import Stat, StepRecord


def course(values: list[float]) -> str:
    rng = np.random.default_rng(0)
    payoff = Payoff(BaselineConfig())
    for step, value in enumerate(values):
        payoff.see(StepRecord(step, totals={"accuracy": value + float(rng.normal()) * 0.03}))
    return payoff.course


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.4] * 30, "level"),
        ([0.4] * 15 + [0.8] * 15, "rose"),
        ([0.4] * 10 + [0.8] * 15 + [0.4] * 10, "fell"),
        ([0.4] * 20 + [0.1] * 10, "fell"),
        ([0.4] * 7, "unknown"),
    ],
)
def test_the_course_of_the_reward(values: list[float], expected: str) -> None:
    assert course(values) == expected


def test_the_best_source_is_taken_and_kept() -> None:
    groups = {"*": {"reward": Stat(4, 2.0)}}
    assert outcome(StepRecord(0, totals={"accuracy": 0.5}, groups=groups)) == ("accuracy", 0.5)
    assert outcome(StepRecord(0, totals={"reward": 1.0}, groups=groups)) == ("reward", 2.0)
    assert outcome(StepRecord(0, totals={"reward": 1.0})) == ("reward", 1.0)
    assert outcome(StepRecord(0, totals={"accuracy": math.nan})) == ("", None)
    payoff = Payoff(BaselineConfig(window=2))
    for step in range(12):
        payoff.see(StepRecord(step, totals={"accuracy": 0.5}))
        payoff.see(StepRecord(step, totals={"reward": 9.0}))
    assert payoff.course == "level"
    assert str(payoff) == "accuracy 0.5 -> 0.5"


def test_unknown_is_said() -> None:
    assert str(Payoff(BaselineConfig())) == "reward unknown"


def test_a_reward_that_stays_infinite_is_judged_without_its_noise() -> None:
    payoff = Payoff(BaselineConfig())
    for step in range(30):
        payoff.see(StepRecord(step, totals={"reward": math.inf}))
    assert payoff.course == "rose"
