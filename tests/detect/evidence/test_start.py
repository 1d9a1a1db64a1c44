"""The start of a stream: centre, pooled spread and correlation against direct computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.detect.evidence.start import LEAST, Start

PRIOR_RECORDS = 6  # what the library's spread counts for


def _started(values: list[float], *, spread: float = 0.1, floor: float = 0.02) -> Start:
    start = Start(100, spread=spread, floor=floor, correlation=0.2)
    for one in values:
        start.add(one)
    return start


def _pooled(values: list[float], spread: float, floor: float) -> float:
    x = np.asarray(values)
    d = np.abs(x - np.median(x))
    limit = 3 * max(1.4826 * np.median(d), floor)
    squares = np.sum(np.minimum(d, limit) ** 2)
    variance = (PRIOR_RECORDS * spread**2 + squares) / (PRIOR_RECORDS + len(x) - 1)
    return max(math.sqrt(variance), floor)


@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=12),
    st.floats(0.01, 1.0),
    st.floats(0.001, 0.5),
)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_the_spread_is_pooled_with_the_librarys(
    values: list[float], spread: float, floor: float
) -> None:
    start = _started(values, spread=spread, floor=floor)
    assert start.center == pytest.approx(np.median(values))
    assert start.spread == pytest.approx(_pooled(values, spread, floor))
    stretch = math.sqrt((1 + 0.2) / (1 - 0.2))
    assert start.stretch == pytest.approx(stretch)
    assert start.error == pytest.approx(1.25 * start.spread * stretch / math.sqrt(len(values)))


def test_the_order_of_the_first_records_does_not_matter() -> None:
    values = list(np.random.default_rng(0).normal(size=9))
    assert _started(values).spread == pytest.approx(_started(values[::-1]).spread)


def test_one_absurd_record_does_not_spoil_the_start() -> None:
    quiet = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.02]
    assert _started([*quiet, 50.0]).center == pytest.approx(1.01)
    assert _started([*quiet, 50.0]).spread < 2.5 * _started(quiet).spread


def test_a_constant_series_has_the_librarys_spread_at_first_and_never_less_than_the_floor() -> None:
    assert _started([1.0]).spread == 0.1
    assert 0.02 <= _started([1.0] * 90).spread < 0.1
    assert _started([1.0] * 90, floor=0.09).spread == 0.09


def test_it_is_judged_after_four_records_and_complete_after_the_window() -> None:
    start = Start(8, spread=0.1, floor=0.02, correlation=0.2)
    lacks = []
    for _ in range(8):
        lacks.append(start.lacks)
        start.add(1.0)
    assert lacks == [LEAST, 3, 2, 1, 0, 0, 0, 0]
    assert start.full
    assert Start(2, spread=0.1, floor=0.02, correlation=0.2).lacks == 2
    assert Start(0, spread=0.1, floor=0.02, correlation=0.2).lacks == 1


def _learned(values: list[float], window: int = 8) -> Start:
    start = Start(window, spread=0.1, floor=0.02, correlation=0.1)
    for i, one in enumerate(values):
        if i < window:
            start.add(one)
        start.learn(one, quiet=True)
    return start


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_the_correlation_is_learned_from_the_run(rho: float) -> None:
    rng, x, values = np.random.default_rng(3), 0.0, []
    for _ in range(200):
        x = rho * x + rng.normal() * 0.1 * math.sqrt(1 - rho**2)
        values.append(float(x))
    stretch = _learned(values).stretch
    expected = math.sqrt((1 + max(rho, 0.1)) / (1 - max(rho, 0.1)))
    assert stretch == pytest.approx(expected, rel=0.35)


def test_noise_is_learned_up_to_three_times_that_of_the_start() -> None:
    rng = np.random.default_rng(4)
    start = list(rng.normal(size=8) * 0.1)
    louder = _learned([*start, *(rng.normal(size=100) * 0.2)])
    assert louder.spread == pytest.approx(0.2, rel=0.35)
    assert _learned([*start, *(rng.normal(size=100) * 50)]).spread <= 3.001 * _started(start).spread


def test_a_trend_does_not_become_noise() -> None:
    rng = np.random.default_rng(5)
    level = _learned(list(rng.normal(size=60) * 0.1))
    trend = _learned(list(rng.normal(size=60) * 0.1 + np.linspace(0, 3, 60)))
    assert trend.spread == pytest.approx(level.spread, rel=0.5)


def test_the_correlation_is_not_learned_under_suspicion() -> None:
    rng = np.random.default_rng(6)
    start = _learned(list(rng.normal(size=30) * 0.1))
    stretch = start.stretch
    for _ in range(30):
        start.learn(1.0, quiet=False)
    assert start.stretch == stretch
