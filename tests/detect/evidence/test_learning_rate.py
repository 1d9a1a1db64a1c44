"""Warm-up, decay and a rate that was raised."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest

from roledrift.detect.evidence.learning_rate import LearningRates
from roledrift.records import StepRecord
from roledrift.workflow import VOTING

ISOLATED = VOTING.routed("isolated")
PEAK = 1e-6


def _fed(rates: Iterable[float]) -> LearningRates:
    known = LearningRates(ISOLATED)
    for step, rate in enumerate(rates):
        known.observe(StepRecord(step, totals={"lr": rate}))
    return known


def _warm_up(steps: int, total: int = 60) -> list[float]:
    return [PEAK * min((t + 1) / steps, 1.0) for t in range(total)]


@pytest.mark.parametrize("steps", [1, 3, 15, 30])
def test_a_warm_up_is_no_rise(steps: int) -> None:
    rates = _warm_up(steps)
    for end in range(1, len(rates) + 1):
        assert _fed(rates[:end]).raised("generator") == pytest.approx(1.0)
        assert _fed(rates[:end]).unit("generator") == pytest.approx(rates[end - 1])


def test_a_rise_after_the_warm_up_is_one_and_no_excuse() -> None:
    known = _fed([*_warm_up(10, 20), 5 * PEAK])
    assert known.raised("generator") == pytest.approx(5.0)
    assert known.unit("generator") == pytest.approx(PEAK)


def test_decay_is_no_rise_and_no_excuse() -> None:
    known = _fed([*_warm_up(5, 10), *np.linspace(PEAK, 0.1 * PEAK, 50)])
    assert known.raised("generator") == pytest.approx(0.1)
    assert known.unit("generator") == pytest.approx(PEAK)


def test_restarts_of_a_cosine_to_the_old_peak_are_no_rise() -> None:
    cosine = [PEAK * (1 + math.cos(math.pi * t / 20)) / 2 + 1e-9 for t in range(21)]
    highest = 0.0
    rates = [*_warm_up(5, 6), *cosine, *cosine, *cosine]
    for end in range(1, len(rates) + 1):
        highest = max(highest, _fed(rates[:end]).raised("generator"))
    assert highest == pytest.approx(1.0, rel=0.01)


def test_policies_have_rates_of_their_own() -> None:
    known = LearningRates(ISOLATED)
    for step in range(10):
        lr = PEAK if step < 5 else 3 * PEAK
        known.observe(StepRecord(step, totals={"lr/generator": lr, "lr/aggregator": PEAK}))
    assert known.raised("generator") == pytest.approx(3.0)
    assert known.raised("aggregator") == 1.0


@pytest.mark.parametrize("odd", [0.0, -1.0, math.nan, math.inf])
def test_what_is_no_rate_is_passed_over(odd: float) -> None:
    known = _fed([odd] * 5)
    assert not known.known
    assert (known.unit("generator"), known.raised("generator")) == (1.0, 1.0)
    assert _fed([PEAK, PEAK, odd]).raised("generator") == 1.0


def test_a_first_rate_of_zero_does_not_end_the_warm_up() -> None:
    assert _fed([0.0, *_warm_up(10, 30)]).raised("generator") == pytest.approx(1.0)
