"""The noise of a series against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.detect.evidence.noise import Noise


@given(st.lists(st.floats(-9, 9), min_size=0, max_size=30), st.integers(1, 12))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_it_is_the_median_jump_of_the_last_records(values: list[float], remembered: int) -> None:
    noise = Noise(remembered)
    for one in values:
        noise.observe(one)
    jumps = np.abs(np.diff(values))[-remembered:]
    assert noise.n == len(jumps)
    assert noise.sd == pytest.approx(np.median(jumps) / 0.954 if len(jumps) else 0.0)


def test_it_is_the_standard_deviation_of_normal_values_with_a_trend_and_a_shift() -> None:
    rng = np.random.default_rng(0)
    noise = Noise(4000)
    for one in rng.normal(size=4000) + np.linspace(0, 20, 4000) + 50 * (np.arange(4000) > 2000):
        noise.observe(float(one))
    assert noise.sd == pytest.approx(1.0, rel=0.05)
