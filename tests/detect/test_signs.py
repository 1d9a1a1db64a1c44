from __future__ import annotations

import math
from typing import Any

import pytest
from roledrift.detect.baseline import SHARE
from roledrift.detect.signs import Sign, SignOf

from roledrift.config import BaselineConfig, Config
from roledrift.records import Stat, StepRecord

CONFIG = Config(baseline=BaselineConfig(window=4))


def watch(values: list[float | None], effect: float = 0.2) -> tuple[Sign, list[bool]]:
    sign = Sign(SignOf("x", SHARE, effect), CONFIG)
    told = []
    for step, value in enumerate(values):
        sign.take(step, value)
        told.append(sign.drifting)
    return sign, told


@pytest.mark.parametrize("way", [1, -1])
def test_a_lasting_move_in_its_direction_is_the_sign(way: int) -> None:
    values: list[float | None] = [0.5] * 8 + [0.5 + way * 0.4] * 8
    sign, told = watch(values, effect=way * 0.2)
    assert not any(told[:10])
    assert told[-1]
    assert sign.onset == 8
    assert sign.cast is True
    _, other = watch(values, effect=-way * 0.2)
    assert not any(other)


def test_one_value_is_no_sign() -> None:
    _, told = watch([0.5] * 8 + [1.0] + [0.5] * 5)
    assert not any(told)


def test_before_the_baseline_and_without_values_there_is_no_vote() -> None:
    sign, _ = watch([0.5, None, math.nan, 0.5, 0.5])
    assert (sign.cast, sign.lacks, sign.fresh, sign.seen) == (None, 1, False, True)
    assert watch([])[0].seen is False


def test_few_things_are_pooled_to_one_value() -> None:
    sign = Sign(SignOf("x", SHARE, 0.2, pool=10), CONFIG)
    fresh = []
    for step in range(40):
        stat = Stat(4, step % 3 / 2)
        sign.see(StepRecord(step, groups={"generator": {"x": stat}}), "generator")
        fresh.append(sign.fresh)
    # Three records of four things make a value; four of those are the baseline.
    assert fresh == [step % 3 == 2 and step > 12 for step in range(40)]
    assert sign.now == pytest.approx(0.5)


def test_an_empty_stat_is_no_value(run: Any) -> None:
    sign = Sign(SignOf("x", SHARE, 0.2), CONFIG)
    sign.see(StepRecord(0, groups={"generator": {"x": Stat(0, math.nan)}}), "generator")
    assert not sign.seen
