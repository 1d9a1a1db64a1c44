import math

import numpy as np
import pytest
from roledrift_paper.intervals import of_mean


def test_students_interval_by_hand() -> None:
    # 2 -/+ t(0.975, 2 degrees of freedom) = 4.302653 times 1 / sqrt(3)
    ends = of_mean([1.0, 2.0, 3.0])
    assert ends == pytest.approx((2 - 2.484138, 2 + 2.484138), abs=1e-6)
    assert of_mean([3.0, math.nan, 2.0, 1.0]) == ends


def test_two_values_have_no_interval_nor_have_equal_ones() -> None:
    assert of_mean([1.0, 2.0, math.inf]) is None
    assert of_mean([0.5] * 4) is None


def test_it_does_not_leave_what_is_possible() -> None:
    assert of_mean([0.9, 0.95, 1.0], (0.0, 1.0)) == (pytest.approx(0.825793, abs=1e-6), 1.0)


def test_it_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    ends = [of_mean(list(row)) for row in rng.normal(size=(2000, 4))]
    covered = sum(one is not None and one[0] <= 0.0 <= one[1] for one in ends)
    assert covered / 2000 == pytest.approx(0.95, abs=0.015)
