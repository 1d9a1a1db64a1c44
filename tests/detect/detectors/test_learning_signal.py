"""Groups without a gradient: too hard, solved, or in between."""

from __future__ import annotations

import numpy as np
import pytest

from tests.detect.logged import healthy, named, verdict


def _groups(share: float, right: float, seed: int) -> dict[str, np.ndarray]:
    run, rng = healthy(seed), np.random.default_rng(seed)
    run["reward"] = rng.binomial(128, right, 240) / 128
    run["zero_variance"] = rng.binomial(16, share, 240) / 16
    return run


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("share", "right", "finding"),
    [(0.8, 0.03, "task_too_hard"), (0.8, 0.97, "task_solved"), (0.2, 0.5, "")],
)
def test_all_wrong_and_all_right_are_told_apart(
    share: float, right: float, finding: str, seed: int
) -> None:
    found = verdict(_groups(share, right, seed), "learning_signal")
    assert found.finding == finding
    if finding:
        assert found.severity == "suspicious"


def test_groups_that_degenerate_at_a_middling_level_are_found() -> None:
    run, rng = _groups(0.1, 0.5, 0), np.random.default_rng(0)
    run["zero_variance"] = rng.binomial(16, np.linspace(0.05, 0.75, 240)) / 16
    assert "groups_degenerate" in named(run)


@pytest.mark.parametrize("name", ["advantage_std", "reward_std"])
@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_a_spread_that_dies_is_found_in_any_unit(name: str, unit: float) -> None:
    run = _groups(0.2, 0.5, 1)
    run[name] = unit * np.exp(-np.maximum(np.arange(240) - 100, 0) / 20)
    assert verdict(run, "learning_signal").finding == "advantage_collapse"


def test_the_scale_of_a_reward_for_results_is_found_out() -> None:
    """Right answers earn 2 points, and format another one: 97 % are right."""
    run = _groups(0.8, 0.97, 2)
    right = run["reward"]
    run |= {
        "reward.correctness": 2 * right,
        "reward_std.correctness": 2 * np.sqrt(right * (1 - right)),
        "reward": 2 * right + 1,
    }
    assert verdict(run, "learning_signal").finding == "task_solved"


def test_a_task_is_solved_since_its_answers_are_right_and_not_since_its_groups_are_equal() -> None:
    """As in public runs: first all wrong, then all right, with equal groups all along."""
    run = _groups(0.8, 0.97, 3)
    run["reward"][:60] = 0.05
    found = verdict(run, "learning_signal")
    assert found.finding == "task_solved"
    assert found.onset is not None
    assert found.onset > 60


def test_it_does_not_apply_where_nothing_is_logged() -> None:
    run = {"reward": healthy()["reward"], "length": healthy()["length"]}
    assert not verdict(run, "learning_signal").applies
