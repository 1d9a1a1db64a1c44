from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.config import BaselineConfig
from roledrift.detect.baseline import LENGTH, MOVEMENT, SHARE, Scale, Warmup, baseline_of


def test_sigma_is_the_documented_formula() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 10.0]
    expected = 1.4826 * 1.0 * 5 / 4.2 * math.sqrt(1 + math.pi / 10) * math.sqrt(3)
    base = baseline_of(values, Scale(log=False, sigma_floor=0.01))
    assert base.center == 3.0
    assert base.sigma == pytest.approx(expected)


def test_sigma_of_independent_normal_values_is_the_widened_standard_deviation() -> None:
    rng = np.random.default_rng(0)
    scale = Scale(log=False, sigma_floor=1e-6)
    sigmas = [baseline_of(list(row), scale).sigma for row in rng.normal(size=(4000, 8))]
    widened = math.sqrt(1 + math.pi / 16) * math.sqrt(3)
    assert np.mean(sigmas) == pytest.approx(widened, rel=0.05)


def test_one_outlier_leaves_the_baseline_alone() -> None:
    clean = [5.0, 5.1, 4.9, 5.0, 5.2, 4.8, 5.0, 5.1]
    spiked = [*clean[:-1], 2471.0]
    assert baseline_of(spiked, LENGTH).typical == pytest.approx(5.0, rel=0.03)
    assert baseline_of(spiked, LENGTH).z(15.0) > 5


def test_a_constant_warmup_has_the_floor_as_spread() -> None:
    assert baseline_of([0.9] * 8, SHARE).sigma == SHARE.sigma_floor


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20), st.floats(0.01, 100))
def test_log_baselines_do_not_depend_on_the_unit(values: list[float], unit: float) -> None:
    scale = Scale(log=True, sigma_floor=0.05, smallest=1e-300, largest=1e300)
    plain, scaled = baseline_of(values, scale), baseline_of([unit * v for v in values], scale)
    assert scaled.z(unit * 3.0) == pytest.approx(plain.z(3.0), rel=1e-6, abs=1e-6)
    assert plain.ratio(plain.typical * 2) == pytest.approx(2)


def test_missing_values_are_passed_over_and_never_zero() -> None:
    warmup = Warmup(BaselineConfig(skip=1, window=3), SHARE)
    assert not warmup.seen
    for value in (0.1, None, 0.8, math.nan, 0.9):
        warmup.see(value)
    assert warmup.seen
    assert warmup.baseline is None
    assert warmup.lacks == 1
    warmup.see(1.0)
    assert warmup.baseline is not None
    assert warmup.baseline.center == 0.9
    warmup.see(0.0)
    assert warmup.baseline.center == 0.9


def test_a_step_without_the_statistic_counts_as_skipped() -> None:
    warmup = Warmup(BaselineConfig(skip=2, window=1), SHARE)
    for value in (None, None, 0.7):
        warmup.see(value)
    assert warmup.baseline is not None


def test_infinite_movement_is_large_and_not_an_error() -> None:
    base = baseline_of([1e-3] * 8, MOVEMENT)
    assert 10 < base.z(math.inf) < math.inf
    assert base.z(-1.0) < 0
