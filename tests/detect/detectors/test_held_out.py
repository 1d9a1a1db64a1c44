"""A reward that rises without the held-out score."""

from __future__ import annotations

import numpy as np
import pytest

from tests.detect.logged import healthy, verdict


@pytest.mark.parametrize("seed", range(3))
def test_a_reward_that_outruns_a_flat_score_is_verifier_gaming(seed: int) -> None:
    run, rng = healthy(seed), np.random.default_rng(seed)
    known = ~np.isnan(run["val_accuracy"])
    run["val_accuracy"][known] = rng.binomial(2000, 0.25, known.sum()) / 2000
    assert verdict(run, "held_out").finding == "verifier_gaming"


def test_a_score_that_falls_is_an_input_problem() -> None:
    run, rng = healthy(1), np.random.default_rng(1)
    known = ~np.isnan(run["val_accuracy"])
    run["val_accuracy"][known] = rng.binomial(500, np.linspace(0.5, 0.2, known.sum())) / 500
    assert verdict(run, "held_out").severity == "input problem"


def test_where_responses_grow_length_is_what_is_paid_for() -> None:
    run = healthy(2)
    run["val_accuracy"] = np.where(np.isnan(run["val_accuracy"]), np.nan, 0.25)
    run["length"] = run["length"] * np.linspace(1, 3, 240)
    assert verdict(run, "held_out").finding == "paid_for_length"


@pytest.mark.parametrize("seed", range(4))
def test_a_score_that_follows_is_fine(seed: int) -> None:
    assert verdict(healthy(seed), "held_out").state == "ok"


def test_without_validations_it_does_not_apply_and_with_few_it_says_what_it_needs() -> None:
    run = healthy()
    assert not verdict({k: v for k, v in run.items() if k != "val_accuracy"}, "held_out").applies
    run["val_accuracy"][50:] = np.nan
    found = verdict(run, "held_out")
    assert found.needs == ("8 validations",)
