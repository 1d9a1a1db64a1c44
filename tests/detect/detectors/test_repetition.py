"""Responses that repeat themselves."""

from __future__ import annotations

import numpy as np
import pytest

from tests.detect.logged import healthy, verdict


@pytest.mark.parametrize("seed", range(3))
def test_a_growing_share_is_found_and_a_small_one_is_not(seed: int) -> None:
    assert verdict(healthy(seed), "repetition").state == "ok"
    run = healthy(seed)
    run["repetition"] = run["repetition"] + np.clip((np.arange(240) - 80) / 300, 0, 1)
    assert verdict(run, "repetition").finding == "repetition"


def test_it_does_not_apply_where_nobody_logs_it() -> None:
    run = {name: column for name, column in healthy().items() if name != "repetition"}
    assert not verdict(run, "repetition").applies
