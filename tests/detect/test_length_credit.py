from __future__ import annotations

import math

import pytest

from roledrift.detect.length_credit import LengthCredit
from roledrift.records import Stat, StepRecord


def seen(values: dict[int, Stat]) -> LengthCredit:
    credit = LengthCredit()
    for step, stat in values.items():
        credit.observe(StepRecord(step, groups={"a": {"length_credit": stat}}), "a")
    return credit


def test_groups_since_the_onset_are_pooled() -> None:
    near = {20: Stat(8, 0.5, sd=0.2), 22: Stat(4, 0.2, sd=0.1)}
    mean, lower = seen({2: Stat(8, -0.9, sd=0.1), **near}).since(20) or (0.0, 0.0)
    assert mean == pytest.approx((8 * 0.5 + 4 * 0.2) / 12)
    square = 8 * (0.2**2 + (0.5 - mean) ** 2) + 4 * (0.1**2 + (0.2 - mean) ** 2)
    assert lower == pytest.approx(mean - 1.645 * math.sqrt(square) / 12)


def test_too_few_groups_say_nothing() -> None:
    assert seen({20: Stat(5, 0.5, sd=0.2)}).since(20) is None
    assert seen({}).since(20) is None
    assert seen({20: Stat(9, math.nan, sd=0.2), 21: Stat(9, 0.5)}).since(20) is None


def test_lately_and_since() -> None:
    credit = seen({step: Stat(4, 0.5 if step >= 30 else 0.0, sd=0.1) for step in range(40)})
    assert credit.lately() == pytest.approx((0.5, 0.5 - 1.645 * 0.1 / math.sqrt(32)))
    assert (credit.since(0) or (1.0, 1.0))[0] == pytest.approx(0.0)
    assert (credit.since(30) or (0.0, 0.0))[0] == pytest.approx(0.5)
    assert credit.since(39) is None


@pytest.mark.parametrize(
    "odd", [Stat(9, 1e308, sd=0.1), Stat(9, 0.5, sd=math.inf), Stat(9, -2.0, sd=0.1)]
)
def test_what_is_no_correlation_is_passed_over(odd: Stat) -> None:
    assert seen({20: odd}).lately() is None
