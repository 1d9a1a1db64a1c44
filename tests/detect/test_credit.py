from __future__ import annotations

import math

import pytest

from roledrift.detect.credit import Credit
from roledrift.records import Stat, StepRecord


def seen(values: dict[int, Stat]) -> Credit:
    credit = Credit()
    for step, stat in values.items():
        credit.see(StepRecord(step, groups={"a": {"length_credit": stat}}), "a")
    return credit


def test_groups_about_the_onset_are_pooled() -> None:
    near = {20: Stat(8, 0.5, sd=0.2), 22: Stat(4, 0.2, sd=0.1)}
    mean, lower = seen({2: Stat(8, -0.9, sd=0.1), **near}).paid(21) or (0.0, 0.0)
    assert mean == pytest.approx((8 * 0.5 + 4 * 0.2) / 12)
    square = 8 * (0.2**2 + (0.5 - mean) ** 2) + 4 * (0.1**2 + (0.2 - mean) ** 2)
    assert lower == pytest.approx(mean - 1.645 * math.sqrt(square) / 12)


def test_too_few_groups_say_nothing() -> None:
    assert seen({20: Stat(9, 0.5, sd=0.2)}).paid(20) is None
    assert seen({}).paid(20) is None
    assert seen({20: Stat(9, math.nan, sd=0.2), 21: Stat(9, 0.5)}).paid(20) is None
