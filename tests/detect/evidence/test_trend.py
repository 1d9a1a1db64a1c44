"""Thinned histories and the line through their last part."""

import math

import numpy as np
import pytest

from roledrift.detect.evidence.trend import Thinned


def _of(values: np.ndarray) -> Thinned:
    series = Thinned()
    for step, value in enumerate(values):
        series.add(step, float(value))
    return series


def test_a_long_series_is_kept_in_bins_of_equally_many_records() -> None:
    steps, values = _of(np.arange(5000.0)).arrays()
    assert 64 <= steps.size <= 128
    assert np.allclose(steps, values)
    assert set(np.diff(steps)) == {64.0}


@pytest.mark.parametrize("part", [0.4, 1.0])
def test_the_gain_is_that_of_least_squares(part: float) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 100)
    values = np.linspace(0, 2, 100) + noise
    gain = _of(values).gain(part)
    assert gain is not None
    last = slice(math.floor(100 * (1 - part)), None)
    slope = np.polyfit(np.arange(100.0)[last], values[last], 1)[0]
    assert gain.change == pytest.approx(slope * (gain.last - gain.first))
    assert gain.least < gain.change < gain.most


def test_the_bound_holds_in_nearly_all_series_without_a_trend() -> None:
    rng = np.random.default_rng(1)
    gains = [_of(rng.normal(0, 1, 200)).gain(0.4) for _ in range(300)]
    assert sum(one is not None and one.least > 0 for one in gains) <= 6


def test_what_is_no_number_is_passed_over() -> None:
    series = _of(np.array([1.0, math.nan, math.inf, 1e200, 2.0]))
    assert series.records == 2
    assert series.gain() is None
    assert series.range() == (1.5, 1.5)
