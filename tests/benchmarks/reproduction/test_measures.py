import math

import numpy as np
import pytest

from benchmarks.reproduction.measures import (
    Results,
    capture,
    chi2_trend,
    fall,
    floor_height,
    gain,
    grown,
    peak,
    transfer_gain,
)
from tests.benchmarks.reproduction.rows import row, terse


def test_fall_of_a_run_that_rises_and_falls() -> None:
    falls = row("steps/a", accuracy=[0.2] * 6 + [0.9] * 12 + [0.3] * 6)
    assert fall(falls) == pytest.approx(0.6, abs=0.04)
    assert fall(row("steps/a", accuracy=[0.5] * 24)) == pytest.approx(0.0)
    assert fall(row("steps/a", accuracy=[0.5] * 11)) is None


def test_choosing_the_best_window_inflates_no_fall() -> None:
    """Pure noise around one level has no fall on average; a plain maximum would see one."""
    rng = np.random.default_rng(1)
    noise = rng.binomial(32, 0.5, size=(400, 24)) / 32
    plain = [max(np.convolve(one, np.ones(6) / 6, "valid")) - one[-6:].mean() for one in noise]
    ours = [fall(row("steps/a", accuracy=one.tolist())) for one in noise]
    assert np.mean(plain) > 0.05
    assert abs(np.mean(np.array(ours, dtype=float))) < 0.012


def test_peak_is_taken_from_the_problems_that_did_not_choose() -> None:
    # Step 6 looks best on the even problems by luck: its odd ones are all wrong.
    lucky = row("grid-math-M/a", validation={"0": "4:0", "6": "4:a", "12": "4:6"})
    assert peak(lucky) == pytest.approx((0.0 + 0.5) / 2)
    assert gain(lucky) == pytest.approx(0.5)
    assert peak(row("grid-math-M/a", validation={"0": "4:f"})) is None


def test_capture_needs_a_form_to_lose() -> None:
    assert capture(row("capture/sp", roles=terse([0.9] * 10 + [0.1] * 10))) == "lasting"
    assert capture(row("capture/sp", roles=terse([0.9] * 8 + [0.1] * 4 + [0.9] * 8))) == "passing"
    assert capture(row("capture/sp", roles=terse([0.2] * 10 + [0.0] * 10))) == "none"


def test_transfer_is_compared_on_the_same_problems() -> None:
    before = row("grid-math-M/voting-ip", validation={"0": "4:8"})
    after = row("transfer/voting", validation={"0": "8:e0"})
    assert transfer_gain(after, Results([before, after])) == pytest.approx(0.5)
    assert transfer_gain(after, Results([after])) is None


def test_grown_compares_the_ends() -> None:
    roles = {"evaluator": {"tokens": [4.0] * 5 + [9.0] * 6}}
    assert grown(row("grid-math-M/eval_opt-sp", roles=roles), "evaluator") is True
    assert grown(row("grid-math-M/eval_opt-sp", roles=roles), "synthesizer") is None


def test_a_floor_is_held_against_the_movement_of_the_same_run() -> None:
    roles = {"generator": {"k3": [0.01] * 12}}
    policies = {"generator": {"rollout_chi2": [0.04] * 6 + [0.02] * 6}}
    run = row("floor/at-one", roles=roles, policies=policies)
    assert chi2_trend(run) == pytest.approx(math.log(0.5))
    assert floor_height(run) == pytest.approx(math.log(0.03 / 0.02))
    assert floor_height(row("floor/at-one", roles=roles)) is None
