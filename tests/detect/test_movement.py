"""One role's movement against its own start."""

from __future__ import annotations

from typing import Any

import pytest

from roledrift.config import BaselineConfig
from roledrift.detect.movement import Movement
from roledrift.records import Stat, StepRecord
from roledrift.thresholds import PolicyDriftConfig


def moved(records: list[StepRecord]) -> Movement:
    movement = Movement("a", PolicyDriftConfig(), baseline=BaselineConfig(), forget_after=5)
    for record in records:
        movement.see(record)
    return movement


def test_peaks_are_over_the_baseline(run: Any, ramp: Any) -> None:
    k3 = ramp(1e-3, 0.1, start=20, length=10, steps=40) + [1e-3] * 20
    ppl = [1.25] * 30 + [2.5] + [1.25] * 29
    movement = moved(run({"a": {"update.k3": k3, "ppl": ppl}}))
    assert movement.peak("update.k3") == pytest.approx(100, rel=1e-3)
    assert movement.peak("ppl") == pytest.approx(2)
    assert movement.now is not None
    assert not movement.now.moving
    assert movement.now.onset is None


def test_growth_and_onset(run: Any, ramp: Any) -> None:
    k3 = ramp(1e-3, 0.1, start=20, length=10, steps=50)
    now = moved(run({"a": {"update.k3": k3}})).now
    assert now is not None
    assert (now.moving, now.drifting) == (True, True)
    assert now.growth == pytest.approx(100)
    assert now.onset is not None
    assert 19 <= now.onset <= 30


def test_updates_are_those_of_the_rank_that_saw_most() -> None:
    counted = StepRecord(0, groups={"a": {"updates": Stat(2, 2.0, high=3.0)}})
    assert moved([counted]).updates == 3
    assert moved([StepRecord(0)]).updates is None
