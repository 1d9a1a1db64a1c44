"""How often ``length_inflation`` cries wolf, and how late it is: counted on simulated runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from roledrift.config import Config
from roledrift.detect.length_inflation import LengthInflation
from roledrift.workflow import VOTING


def _first_drift(records: Any) -> int | None:
    detector = LengthInflation(VOTING, Config())
    for record in records:
        if any(one.state == "drift" for one in detector.update(record)):
            return int(record.step)
    return None


@pytest.mark.parametrize(
    ("spread", "correlation", "most"),
    [(0.1, 0.5, 2), (0.1, 0.8, 2), (0.2, 0.5, 6), (0.2, 0.8, 20)],
)
def test_healthy_runs_of_a_hundred_steps(
    run: Any, noise: Any, spread: float, correlation: float, most: int
) -> None:
    """The stated rate is 2 in 200 runs; lengths that wander by 20 % for long give 14 in 200."""
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, int(100 * spread), int(10 * correlation)])
        lengths = 5 * noise(rng, 100, sd=spread, correlation=correlation, outliers=0.01, up_to=5.0)
        alarms += _first_drift(run({"aggregator": {"length": lengths}})) is not None
    assert alarms <= most


def test_growth_over_a_hundred_records_does_not_excuse_itself(
    run: Any, noise: Any, ramp: Any
) -> None:
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        lengths = ramp(5.0, 17.0, start=10, length=100, steps=140) * noise(
            rng, 140, sd=0.1, correlation=0.3
        )
        found += _first_drift(run({"aggregator": {"length": lengths}})) is not None
    assert found >= 38


def test_growth_to_the_threefold_is_found_within_a_dozen_records(
    run: Any, noise: Any, ramp: Any
) -> None:
    delays = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        start = 12 + seed % 30
        lengths = ramp(5.0, 17.0, start=start, length=15, steps=90) * noise(
            rng, 90, sd=0.1, correlation=0.5
        )
        found = _first_drift(run({"aggregator": {"length": lengths}}))
        delays.append(np.inf if found is None else found - start)
    assert np.mean(np.isfinite(delays)) >= 0.98
    assert np.median(delays) <= 12
