"""What one unit of change means on each scale."""

import math

import pytest

from roledrift.detect.evidence.scales import COUNTS, LINEAR, RATIOS, SHARES


@pytest.mark.parametrize(
    ("scale", "value"), [(LINEAR, -0.3), (COUNTS, 42.0), (RATIOS, 3e-5), (SHARES, 0.37)]
)
def test_back_is_the_inverse(scale: object, value: float) -> None:
    assert scale.back(scale.on(value)) == pytest.approx(value)  # type: ignore[attr-defined]


def test_ratios_are_the_same_distance_everywhere() -> None:
    assert RATIOS.on(2e-6) - RATIOS.on(1e-6) == pytest.approx(RATIOS.on(2.0) - RATIOS.on(1.0))
    assert COUNTS.on(20.0) - COUNTS.on(10.0) == pytest.approx(math.log(2))


def test_shares_have_one_noise_whatever_they_are() -> None:
    # Delta method: the sd of asin sqrt p is sd(p) / (2 sqrt(p (1 - p))) = 1 / (2 sqrt n).
    for share in (0.05, 0.5, 0.9):
        step = 1e-6
        slope = (SHARES.on(share + step) - SHARES.on(share - step)) / (2 * step)
        assert slope * math.sqrt(share * (1 - share)) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_what_cannot_be_is_the_smallest_value(value: float) -> None:
    assert COUNTS.on(value) == COUNTS.on(0.5)
    assert RATIOS.on(value) == RATIOS.on(1e-12)
    assert SHARES.on(value) == 0.0
    assert SHARES.on(1.7) == pytest.approx(math.pi / 2)
