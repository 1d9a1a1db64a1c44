from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.report.numbers import average, number, percent, ratio


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (0.5, "0.5"),
        (0.12345, "0.123"),
        (9.996, "10"),
        (15.64, "15.6"),
        (123.4, "123"),
        (999.7, "1,000"),
        (12345.6, "12,346"),
        (1.5e-5, "1.5e-5"),
        (2.5e7, "2.5e7"),
        (-0.0456, "-0.0456"),
        (math.nan, "NaN"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
    ],
)
def test_number_reads_with_three_significant_digits(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(7.4, "x7.4"), (1.512, "x1.51"), (0.4, "x0.40"), (4.7e-4, "x4.7e-4"), (99.96, "x100"),
     (114.2, "x114"), (math.nan, "–"), (None, "–")],
)  # fmt: skip
def test_ratio_reads_as_a_factor(value: float | None, text: str) -> None:
    assert ratio(value) == text


def test_percent() -> None:
    assert percent(0.0055) == "0.55 %"


@given(st.floats(min_value=1e-3, max_value=9e5))
def test_number_is_within_half_a_unit_of_its_third_digit(value: float) -> None:
    shown = float(number(value).replace(",", ""))
    assert abs(shown - value) <= 0.0051 * value


def test_average_passes_over_non_finite_values() -> None:
    assert average([1.0, math.nan, 3.0]) == 2.0
    assert average([math.inf]) is None
