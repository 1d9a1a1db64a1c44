"""The critic of PPO."""

from __future__ import annotations

import numpy as np

from tests.detect.logged import healthy, named, verdict


def test_a_critic_worse_than_the_mean_is_found_after_its_warm_up() -> None:
    run = healthy()
    run["explained_variance"][:15] = -1.0
    assert verdict(run, "value_head").state == "ok"
    run["explained_variance"] = run["explained_variance"] - np.linspace(0, 1.5, 240)
    assert "value_divergence" in named(run)


def test_without_an_explained_variance_its_loss_is_judged() -> None:
    run = {name: column for name, column in healthy().items() if name != "explained_variance"}
    noise = np.random.default_rng(0).normal(0, 0.2, 240)
    run["value_loss"] = np.exp(noise + np.clip((np.arange(240) - 80) / 60, 0, 2))
    assert "value_divergence" in named(run)
