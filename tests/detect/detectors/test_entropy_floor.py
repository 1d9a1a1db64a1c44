"""Exploration that runs out, with and without a gain."""

from __future__ import annotations

import numpy as np
import pytest

from tests.detect.logged import healthy, named, verdict


def _falling(rate: float, seed: int, *, gains: bool) -> dict[str, np.ndarray]:
    run, t = healthy(seed), np.arange(240)
    noise = np.random.default_rng(seed).normal(0, 0.05, 240)
    run["entropy"] = 0.5 * np.exp(-rate * t / 240 + noise)
    if not gains:
        run["reward"] = np.clip(np.minimum(0.2 + t / 200, 0.45) + noise / 2, 0, 1)
    return run


@pytest.mark.parametrize("seed", range(3))
def test_entropy_that_falls_to_its_floor_for_nothing_is_found(seed: int) -> None:
    assert "entropy_floor" in named(_falling(4.0, seed, gains=False))


@pytest.mark.parametrize("seed", range(3))
def test_entropy_that_buys_something_is_none(seed: int) -> None:
    assert named(_falling(2.5, seed, gains=True)) == set()


def test_the_step_of_arrival_is_projected() -> None:
    run = _falling(2.0, 0, gains=False)
    reason = verdict(run, "entropy_floor").reason
    # 0.1 = exp(-2 t / 240) at t = 276.
    step = int(reason.split("about step ")[1].split(";")[0])
    assert step == pytest.approx(276, abs=25)


def test_the_unit_of_the_entropy_does_not_matter() -> None:
    run = _falling(4.0, 1, gains=False)
    assert "entropy_floor" in named(run | {"entropy": run["entropy"] * 0.01})


def test_a_record_without_it_takes_no_verdict_back() -> None:
    run = _falling(2.0, 0, gains=False)
    run["entropy"][-1] = np.nan
    assert verdict(run, "entropy_floor").applies
