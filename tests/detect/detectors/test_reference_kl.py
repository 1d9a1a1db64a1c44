"""The course of the divergence from the reference."""

from __future__ import annotations

import numpy as np
import pytest

from tests.detect.logged import healthy, named, verdict

T = np.arange(240)


def _kl(values: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    noise = np.exp(np.random.default_rng(seed).normal(0, 0.2, 240))
    return healthy(seed) | {"reference.k3": values * noise}


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_growth_up_to_constant_speed_is_healthy(power: float) -> None:
    assert named(_kl(1e-5 * (1.0 + T) ** power)) == set()


@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_growth_that_accelerates_is_a_runaway_in_any_unit(unit: float) -> None:
    found = verdict(_kl(unit * 1e-3 * np.exp(np.maximum(T - 120, 0) / 25)), "reference_kl")
    assert found.finding == "kl_runaway"


def test_growth_that_buys_nothing_is_a_runaway() -> None:
    run = _kl(1e-5 * (1.0 + T) ** 2)
    rng = np.random.default_rng(1)
    run["reward"] = np.clip(np.minimum(0.2 + T / 150, 0.5) + rng.normal(0, 0.015, 240), 0, 1)
    assert "kl_runaway" in named(run)


def test_a_policy_that_is_held_and_learns_nothing_is_strangled() -> None:
    run = _kl(np.full(240, 1e-5))
    run["reward"] = np.random.default_rng(0).binomial(128, 0.2, 240) / 128
    assert "kl_strangled" in named(run)


def test_divergence_at_one_place_is_found() -> None:
    run = healthy()
    run["reference.top_share"] = 0.15 + 0.4 * np.clip((T - 100) / 60, 0, 1)
    assert "kl_concentrated" in named(run)


def test_a_warm_up_is_no_acceleration() -> None:
    run = healthy()
    run["lr"] = 1e-6 * np.minimum(1.0, (T + 1) / 200)
    spent = np.cumsum(run["lr"]) * 1e6
    run["reference.k3"] = 1e-5 * spent**2
    assert "kl_runaway" not in named(run)


def test_without_a_penalty_it_does_not_apply() -> None:
    assert not verdict(healthy() | {"reference.k3": np.zeros(240)}, "reference_kl").applies


def test_a_record_without_it_takes_no_verdict_back() -> None:
    run = _kl(1e-5 * (1.0 + T) ** 1.0)
    run["reference.k3"][-1] = np.nan
    assert verdict(run, "reference_kl").state == "ok"
