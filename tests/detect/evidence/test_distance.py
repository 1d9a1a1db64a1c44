"""Several distances as one."""

import math

import pytest

from roledrift.detect.evidence.distance import Distance


def test_it_is_the_geometric_mean_of_what_was_measured_at_first() -> None:
    distance = Distance(1e-4)
    assert distance.log("a", {}) is None
    assert not distance.begun("a")
    assert distance.log("a", {"x": 2.0, "y": 8.0}) == pytest.approx(math.log(4.0))
    assert distance.begun("a")
    assert distance.log("a", {"x": 2.0, "y": 8.0, "z": 1e9}) == pytest.approx(math.log(4.0))
    assert distance.log("a", {"x": 2.0}) is None, "a mean of fewer would jump"
    assert distance.log("b", {"x": 0.0}) == pytest.approx(math.log(1e-4)), "roles are apart"
