"""Tokens that the clip takes away."""

from __future__ import annotations

import numpy as np
import pytest

from tests.detect.logged import healthy, named, verdict


@pytest.mark.parametrize("seed", range(3))
def test_a_share_that_rises_is_saturation(seed: int) -> None:
    run = healthy(seed)
    run["clip_fraction"] = run["clip_fraction"] + np.linspace(0, 0.4, 240)
    assert verdict(run, "clipping").finding == "clip_saturation"


def test_one_side_that_is_full_is_asymmetry() -> None:
    run = healthy()
    run |= {"clip_fraction": np.full(240, 0.16), "clip_low": np.full(240, 0.14)}
    assert verdict(run, "clipping").finding == "clip_asymmetry"


def test_a_share_that_is_large_from_the_start_is_found_too() -> None:
    assert "clip_saturation" in named(healthy() | {"clip_fraction": np.full(240, 0.5)})


def test_no_token_clipped_is_fine() -> None:
    assert verdict(healthy() | {"clip_fraction": np.zeros(240)}, "clipping").state == "ok"
