"""Rewards that pay for length, or that do not follow the accuracy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roledrift.records import Stat
from roledrift.workflow import SINGLE, VOTING
from tests.detect.runs import (
    AGGREGATOR,
    GENERATOR,
    ISOLATED,
    Columns,
    findings,
    judged,
    single,
)


def test_paid_for_length_from_the_first_step_on() -> None:
    for seed in range(3):
        run = Columns(VOTING, seed)
        run.role[AGGREGATOR, "reward_bias"] = 0.1 + run.noise(0.01)
        run.role[GENERATOR, "reward_bias"] = -0.05 + run.noise(0.01)
        run.role[AGGREGATOR, "length_credit"] += 0.5
        _, alerts = judged([replace(one, step=one.step + 99) for one in run.records()])
        assert findings(alerts) == {("reward_hacking", AGGREGATOR)}
        assert alerts[0].onset == 100
        assert alerts[0].step <= 110


def test_paid_for_length_later() -> None:
    run = Columns(VOTING, 1)
    run.role[AGGREGATOR, "reward_bias"] = run.course({29: 0.0, 30: 0.1})
    run.role[AGGREGATOR, "length_credit"] += run.course({29: 0.0, 30: 0.5})
    suite, alerts = judged(run.records())
    assert ("reward_hacking", AGGREGATOR) in findings(alerts)
    assert suite.incidents[0].finding == "reward_hacking"
    assert (
        suite.incidents[0].cause
        == "the reward of the aggregator stopped being that of the other roles"
    )


@pytest.mark.parametrize("only", ["reward_bias", "length_credit"])
def test_either_alone_is_ordinary(only: str) -> None:
    run = Columns(VOTING, 2)
    run.role[AGGREGATOR, only] += 0.5
    assert judged(run.records())[1] == []


def test_a_reward_that_is_noise_is_found_and_does_not_pass() -> None:
    for seed in range(4):
        run = Columns(ISOLATED, seed)
        coins = run.rng.binomial(64, 0.5, run.steps) / 64
        run.total["reward"] = 0.1 * run.total["accuracy"] + 0.9 * coins
        suite, alerts = judged(run.records(), ISOLATED)
        assert ("reward_detached", "*") in findings(alerts)
        assert alerts[0].severity == "input problem"
        assert alerts[0].step <= 40
        assert suite.incidents[0].state == "open"


@pytest.mark.parametrize("unit", [1.0, 10.0, -1.0])
def test_a_reward_in_another_unit_or_shifted_is_the_accuracy_all_the_same(unit: float) -> None:
    run = single(3)
    run.total["reward"] = abs(unit) * run.total["accuracy"] + unit
    records = [
        replace(
            one,
            groups={
                **one.groups,
                "*": {"reward": Stat(64, 1.0, abs(unit) * (one.groups["*"]["reward"].sd or 0.0))},
            },
        )
        for one in run.records()
    ]
    _, alerts = judged(records, SINGLE)
    assert "reward_detached" not in {one.finding for one in alerts}
