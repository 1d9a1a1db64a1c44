"""Longer responses: a finding, and failing only where nothing is gained by them."""

from __future__ import annotations

import numpy as np
import pytest

from roledrift.config import Config
from roledrift.detect.suite import DetectorSuite
from roledrift.errors import ConfigError
from roledrift.workflow import SINGLE, VOTING
from tests.detect.runs import (
    AGGREGATOR,
    GENERATOR,
    Columns,
    findings,
    judged,
    single,
    verdict_of,
)

FINDING = "length_inflation"


def _grown(factor: float, run: Columns, role: str = GENERATOR, start: int = 15) -> Columns:
    run.role[role, "length"] *= np.exp(run.course({start: 0.0, run.steps - 20: np.log(factor)}))
    return run


@pytest.mark.parametrize("factor", [2.0, 3.0])
def test_longer_responses_with_rising_accuracy_are_never_failing(factor: float) -> None:
    for seed in range(3):
        suite, alerts = judged(_grown(factor, single(seed, steps=80)).records(), SINGLE)
        assert {one.severity for one in alerts} <= {"suspicious"}
        assert suite.incidents[0].severity == "suspicious"
        assert not any("roll back" in line for one in alerts for line in one.advice)


@pytest.mark.parametrize("end", [0.5, 0.2])
def test_longer_responses_without_a_gain_are_failing(end: float) -> None:
    for seed in range(4):
        skill = np.interp(np.arange(80), [0, 30, 70], [0.5, 0.5, end])
        _, alerts = judged(_grown(3.0, single(seed, steps=80, accuracy=skill)).records(), SINGLE)
        assert "failing" in {one.severity for one in alerts if one.finding == FINDING}


def test_of_a_workflow_with_a_terse_role_that_one_is_watched() -> None:
    run = _grown(3.0, Columns(VOTING, 1, steps=80))
    assert judged(run.records())[1] == []
    run = _grown(3.0, Columns(VOTING, 1, steps=80), AGGREGATOR)
    _, alerts = judged(run.records())
    assert findings(alerts) == {(FINDING, AGGREGATOR)}
    assert alerts[0].title.startswith("The aggregator has written ")


def test_growth_that_all_roles_share_is_none_of_one() -> None:
    run = _grown(3.0, _grown(3.0, Columns(VOTING, 2, steps=80)), AGGREGATOR)
    suite, alerts = judged(run.records())
    assert alerts == []
    assert "the other roles have grown alike" in verdict_of(suite, FINDING, AGGREGATOR).reason


def test_roles_to_watch_can_be_set() -> None:
    config = Config(detectors={FINDING: {"roles": ["generator"]}})
    _, alerts = judged(_grown(3.0, Columns(VOTING, 3, steps=80)).records(), config=config)
    assert findings(alerts) == {(FINDING, GENERATOR)}
    with pytest.raises(ConfigError, match="no role 'nobody'"):
        DetectorSuite(VOTING, Config(detectors={FINDING: {"roles": ["nobody"]}}))


def test_a_limit_holds_whatever_the_start_was() -> None:
    config = Config(detectors={FINDING: {"limit": 30.0}})
    run = Columns(VOTING, 4)
    run.role[AGGREGATOR, "length"] *= 3.0
    assert judged(run.records())[1] == []
    _, alerts = judged(run.records(), config=config)
    assert [(one.finding, one.severity) for one in alerts] == [(FINDING, "failing")]
    assert alerts[0].threshold == 30.0
    assert alerts[0].step <= 8


def test_a_start_that_is_already_long_is_held_against_the_policy_before_training() -> None:
    run = Columns(VOTING, 5)
    records = run.records()
    base = {role: dict(records[0].groups[role]) for role in VOTING.role_names}
    run.role[AGGREGATOR, "length"] *= 3.0
    records = run.records()
    object.__setattr__(records[0], "base", base)
    suite, alerts = judged(records)
    assert findings(alerts) == {(FINDING, AGGREGATOR)}
    assert alerts[0].onset == 1
    assert "the policy before training" in verdict_of(suite, FINDING, AGGREGATOR).reason


def test_a_token_or_two_are_no_inflation() -> None:
    run = Columns(VOTING, 6)
    run.role[AGGREGATOR, "length"] *= run.course({29: 1.0, 30: 1.6}) / 12.0
    assert judged(run.records())[1] == []


def test_without_lengths_there_is_no_verdict() -> None:
    run = Columns(VOTING, 7)
    del run.role[AGGREGATOR, "length"]
    suite, alerts = judged(run.records())
    assert alerts == []
    assert verdict_of(suite, FINDING, AGGREGATOR).needs == ("response lengths",)


def test_several_seeds_of_noisier_lengths_are_silent() -> None:
    for seed in range(3):
        run = Columns(VOTING, seed, steps=100, correlation=0.5)
        run.role[AGGREGATOR, "length"] *= np.exp(run.noise(0.1))
        assert (FINDING, AGGREGATOR) not in findings(judged(run.records())[1])


def test_single_records_prove_nothing() -> None:
    run = Columns(VOTING, 8)
    run.role[AGGREGATOR, "length"][[20, 30, 41]] *= 40.0
    assert judged(run.records())[1] == []
