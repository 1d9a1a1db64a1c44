from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.report.ticks import linear, logarithmic, whole

NUMBERS = st.floats(-1e9, 1e9)


@given(NUMBERS, NUMBERS, st.integers(1, 9))
def test_ticks_lie_inside_evenly_and_are_few(a: float, b: float, most: int) -> None:
    low, high = min(a, b), max(a, b)
    found = linear(low, high, most)
    slack = 1e-4 * max(abs(low), abs(high), 1e-300)
    assert len(found) <= most + 1
    assert all(low - slack <= one <= high + slack for one in found)
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.25, 0.5, 0.75, 1]), (3, 97, [25, 50, 75]), (-1, 1, [-1, -0.5, 0, 0.5, 1])],
)
def test_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert linear(low, high, 4) == expected


def test_whole_and_logarithmic() -> None:
    assert whole(0, 3, 9) == [0, 1, 2, 3]
    assert whole(0, 500, 5) == [0, 100, 200, 300, 400, 500]
    assert logarithmic(1e-4, 1e-1) == [1e-4, 1e-3, 1e-2, 1e-1]
    assert logarithmic(1, 9) == [1, 2, 5]
    assert logarithmic(0, 1) == linear(math.nan, 1, 3) == []
