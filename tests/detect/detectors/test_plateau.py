"""A run that has stopped learning, and one that never began to."""

from __future__ import annotations

import numpy as np
import pytest

from tests.detect.logged import healthy, named, verdict


def _reward(values: object, seed: int) -> dict[str, np.ndarray]:
    run = healthy(seed)
    noise = np.random.default_rng(seed).normal(0, 0.015, 240)
    return run | {"reward": np.clip(np.asarray(values) + noise, 0, 1)}


@pytest.mark.parametrize("seed", range(4))
def test_a_run_that_still_learns_is_no_plateau(seed: int) -> None:
    assert named(healthy(seed)) == set()


@pytest.mark.parametrize("seed", range(4))
def test_nothing_gained_in_the_last_part_is_a_plateau_since_the_gains_ended(seed: int) -> None:
    run = _reward(np.minimum(0.2 + np.arange(240) / 150, 0.6), seed)
    found = verdict(run, "plateau")
    assert found.finding == "plateau"
    assert found.onset is not None
    assert 40 <= found.onset <= 90


def test_a_run_that_never_rose_has_learned_nothing() -> None:
    assert "no_learning" in named(_reward(np.full(240, 0.3), 1))


def test_a_solved_task_is_no_plateau() -> None:
    assert "plateau" not in named(_reward(np.minimum(0.3 + np.arange(240) / 80, 0.97), 2))


def test_a_short_run_has_none() -> None:
    run = {name: column[:40] for name, column in _reward(np.full(240, 0.3), 1).items()}
    assert not verdict(run, "plateau").applies
