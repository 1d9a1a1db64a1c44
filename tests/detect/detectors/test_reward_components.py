"""Several reward functions against each other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.detect.logged import healthy, named, verdict

T = np.arange(240)


def _parts(seed: int = 0, **parts: np.ndarray) -> dict[str, np.ndarray]:
    return healthy(seed) | {f"reward.{name}": values for name, values in parts.items()}


def _noise(seed: int, size: float) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, size, 240)


@pytest.mark.parametrize("seed", range(3))
def test_format_that_is_learned_first_is_healthy(seed: int) -> None:
    form = 0.98 / (1 + np.exp(-(T - 15) / 5)) + _noise(seed, 0.005)
    run = _parts(seed, correctness=healthy(seed)["reward"], format=form)
    assert verdict(run, "reward_components").state == "ok"


def test_a_reward_for_results_that_never_pays_is_dead() -> None:
    run = _parts(accuracy=np.zeros(240), format=0.5 + _noise(0, 0.05))
    found = verdict(run, "reward_components")
    assert (found.finding, found.severity) == ("component_dead", "input problem")


def test_a_penalty_that_never_strikes_is_not() -> None:
    run = _parts(accuracy=healthy()["reward"], length_penalty=np.zeros(240))
    assert verdict(run, "reward_components").state == "ok"


def test_what_the_advantages_come_from_is_told_by_the_spread_within_the_batch() -> None:
    run = _parts(correctness=0.02 + _noise(0, 0.004), style=0.5 + _noise(1, 0.004))
    run |= {"reward_std.correctness": np.full(240, 0.1), "reward_std.style": np.full(240, 0.4)}
    assert verdict(run, "reward_components").finding == "component_dominates"


def test_form_that_is_learned_late_without_results_is_gaming() -> None:
    form = 0.3 + 0.6 * np.clip((T - 120) / 100, 0, 1) + _noise(0, 0.02)
    run = _parts(correctness=0.4 + _noise(1, 0.05), format=form)
    assert "format_gaming" in named(run)


def test_one_reward_function_has_no_parts() -> None:
    assert not verdict(_parts(correctness=healthy()["reward"]), "reward_components").applies
