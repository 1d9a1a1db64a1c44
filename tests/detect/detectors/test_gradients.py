"""Gradients that are broken, zero, vanishing or spiking."""

from __future__ import annotations

import numpy as np
import pytest

from tests.detect.logged import healthy, named, told, verdict

T = np.arange(240)


def _changed(change: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    run = healthy(seed)
    return run | {"grad_norm": run["grad_norm"] * change}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [0.2, 0.6])
def test_heavy_tailed_norms_are_healthy(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    run = healthy(seed) | {"grad_norm": 0.3 * np.exp(rng.normal(0, spread, 240))}
    assert verdict(run, "gradients").state == "ok"


def test_one_spike_counts_for_nothing_and_three_do() -> None:
    once = np.where(T == 100, 60.0, 1.0)
    assert verdict(_changed(once), "gradients").state == "ok"
    thrice = np.where(np.isin(T, [100, 140, 180]), 60.0, 1.0)
    found = verdict(_changed(thrice), "gradients")
    assert (found.finding, found.onset) == ("gradient_spikes", 101)


def test_a_loss_that_is_not_finite_is_found_though_the_logged_norm_is_fine() -> None:
    run = healthy(0) | {"pg_loss": np.where(T >= 150, np.nan, 0.1)}
    assert verdict(run, "gradients").finding == "gradient_nonfinite"


def test_norms_that_are_not_finite_are_found_at_once() -> None:
    _, alerts, names = told(_changed(np.where(T >= 150, np.nan, 1.0)))
    assert names == {"gradient_nonfinite"}
    (alert,) = [one for one in alerts if one.state == "open"]
    assert (alert.step, alert.severity) == (153, "failing")


@pytest.mark.parametrize(("share", "severity"), [(0.6, "suspicious"), (1.0, "input problem")])
def test_gradients_of_exactly_zero(share: float, severity: str) -> None:
    rng = np.random.default_rng(0)
    zero = (T > 100) & (rng.random(240) < share)
    found = verdict(_changed(np.where(zero, 0.0, 1.0)), "gradients")
    assert (found.finding, found.severity) == ("gradient_zero", severity)


def test_gradients_of_a_solved_task_may_be_zero() -> None:
    run = _changed(np.where(T > 100, 0.0, 1.0)) | {"reward": np.full(240, 1.0)}
    assert "gradient_zero" not in named(run)


def test_a_task_that_is_nearly_solved_explains_zeros_between_ordinary_norms() -> None:
    """As in public runs: 85 % right, most groups equal, and every third gradient zero."""
    run = _changed(np.where((T > 60) & (T % 3 > 0), 0.0, 1.0))
    right = np.minimum(0.2 + T / 90, 0.85) + np.random.default_rng(0).normal(0, 0.03, 240)
    names = named(run | {"reward": np.clip(right, 0, 1)})
    assert not names & {"gradient_zero", "gradient_vanishing"}


@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_a_norm_that_vanishes_is_found_in_any_unit(unit: float) -> None:
    run = _changed(unit * np.exp(-np.maximum(T - 60, 0) / 25))
    assert verdict(run, "gradients").finding == "gradient_vanishing"
