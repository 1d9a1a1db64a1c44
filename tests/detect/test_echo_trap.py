from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from roledrift.detect.echo_trap import EchoTrap, gradient_norm

from roledrift.config import Config
from roledrift.judgement import Verdict
from roledrift.records import Stat, StepRecord
from roledrift.workflow import VOTING
from tests.detect.healthy import Run


def judge(records: list[StepRecord]) -> list[Verdict]:
    detector = EchoTrap(VOTING, Config())
    return [v for one in records for v in detector.update(one) if v.role == "generator"]


def made(*, fell: bool = True, spike: bool = True, norms: bool = True) -> list[StepRecord]:
    found = []
    for step in range(40):
        late = step >= 20
        totals = {"accuracy": 0.2 if late and fell else 0.5}
        if norms:
            totals["grad_norm"] = 2.0 if spike and step == 22 else 0.1
        stats = {
            "entropy": Stat(900, 0.02 if late else 0.2),
            "reward_spread": Stat(16, 0.1 if late else 0.4),
        }
        found.append(StepRecord(step, groups={"generator": stats}, totals=totals))
    return found


def test_all_three_signs_and_no_gain_are_the_trap() -> None:
    found = next(one for one in judge(made()) if one.state == "drift")
    assert (found.finding, found.value) == ("echo_trap", 3.0)
    assert "gradient norm x20.0 at step 22" in found.reason
    assert found.onset == 20


def test_two_signs_are_suspected_if_the_reward_fell_and_watched_if_not() -> None:
    assert judge(made(spike=False))[-1].finding == "echo_suspected"
    assert judge(made(spike=False, fell=False))[-1].state == "watch"


def test_without_gradient_norms_two_signs_are_all_there_can_be() -> None:
    found = judge(made(norms=False))[-1]
    assert (found.finding, found.needs) == ("echo_suspected", ("gradient norm",))


def test_without_the_spread_of_rewards_equal_groups_stand_in() -> None:
    records = [
        StepRecord(
            one.step,
            totals=one.totals,
            groups={
                "generator": {
                    "entropy": one.groups["generator"]["entropy"],
                    "zero_variance": Stat(16, 0.9 if one.step >= 20 else 0.3),
                }
            },
        )
        for one in made()
    ]
    found = next(one for one in judge(records) if one.state == "drift")
    assert found.finding == "echo_trap"
    assert "zero_variance" in found.reason


def test_nothing_measured_is_said() -> None:
    assert judge([StepRecord(0)])[0].needs == ("rewards and advantage groups", "entropy")


def test_the_norm_is_taken_from_whoever_measured_it(gram: Any) -> None:
    exact = gram("shared", ["a", "b"], 0.0)
    totals = {"grad_norm/shared": 2.0, "grad_norm": 3.0}
    one = StepRecord(0, totals=totals, gradients=(exact,))
    assert gradient_norm(one, "shared", "generator") == pytest.approx(2**0.5)
    assert gradient_norm(StepRecord(0, totals=totals), "shared", "generator") == 2.0
    assert gradient_norm(StepRecord(0, totals=totals), "own", "generator") == 3.0
    own = StepRecord(0, groups={"generator": {"grad_norm": Stat(1, 4.0)}})
    assert gradient_norm(own, "own", "generator") == 4.0
    assert gradient_norm(StepRecord(0), "own", "generator") is None


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_a_planted_trap_is_found_under_one_of_its_names(correlation: float) -> None:
    names: list[str] = []
    for seed in range(20):
        run = Run(seed, correlation)
        run.solve(np.clip((0.5 + run.wander(0.04)) * (1 - 0.4 * run.ramp(55, 15)), 0.02, 0.98))
        run.entropy = 0.17 * 6.0 ** -run.ramp(50, 10)
        run.equal = np.clip(0.35 + 0.5 * run.ramp(50, 10) + run.wander(0.05), 0, 1)
        run.norm[58:64] *= 8
        drifts = [one for one in judge(run.records()) if one.state == "drift"]
        assert drifts
        names += {one.finding for one in drifts}
    assert names.count("echo_trap") >= 10
