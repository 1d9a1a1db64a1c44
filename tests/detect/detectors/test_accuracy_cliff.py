"""The damage: every series by itself, for 30 validation problems as for 1,000."""

from __future__ import annotations

import numpy as np
import pytest

from roledrift.records import Stat, StepRecord
from roledrift.workflow import SINGLE
from tests.detect.runs import ISOLATED, Columns, findings, judged, single, verdict_of

NAME = "accuracy_cliff"


def _falling(start: float, end: float, seed: int, problems: int = 200) -> Columns:
    skill = np.interp(np.arange(120), [0, 60, 61], [start * 0.8, start, end])
    return Columns(ISOLATED, seed, steps=120, accuracy=skill, problems=problems, validate=10)


@pytest.mark.parametrize("problems", [30, 64, 200, 1000])
@pytest.mark.parametrize("start", [0.3, 0.45, 0.8])
def test_a_fall_to_a_tenth_is_failing_within_three_validations(problems: int, start: float) -> None:
    late = 0
    for seed in range(3):
        _, alerts = judged(_falling(start, start / 10, seed, problems).records(), ISOLATED)
        bad = [one.step for one in alerts if one.finding == NAME and one.severity == "failing"]
        late += not bad or bad[0] > 91
        assert bad
    assert late <= 1


@pytest.mark.parametrize("problems", [30, 200])
def test_healthy_runs_and_small_losses_are_silent(problems: int) -> None:
    for seed in range(2):
        assert judged(_falling(0.5, 0.5, seed, problems).records(), ISOLATED)[1] == []
        _, alerts = judged(_falling(0.5, 0.46, seed, problems).records(), ISOLATED)
        assert not [one for one in alerts if one.severity == "failing"]


def test_validation_at_zero_is_a_cliff() -> None:
    records = [
        StepRecord(t, totals={"val_accuracy": 0.4 if t < 4 else 0.0, "val_n": 100.0})
        for t in range(7)
    ]
    _, alerts = judged(records, SINGLE)
    assert findings(alerts) == {(NAME, "*")}
    assert alerts[0].step <= 5
    assert alerts[0].title == "Accuracy has fallen from 0.40 to 0.00 since step 4"


def test_harder_training_problems_are_no_cliff_while_validation_holds() -> None:
    for seed in range(4):
        run = Columns(ISOLATED, seed, steps=100)
        run.total["accuracy"][50:] *= 0.6
        run.total["reward"][50:] *= 0.6
        _, alerts = judged(run.records(), ISOLATED)
        assert NAME not in {one.finding for one in alerts}
        assert {one.severity for one in alerts} <= {"suspicious"}


def test_which_problems_were_solved_counts() -> None:
    """Of 40 problems 10 are lost and 2 gained: too few for the totals, enough for the pairs."""
    before = "1" * 20 + "0" * 20
    after = "0" * 10 + "1" * 10 + "1" * 2 + "0" * 18
    steps = {}
    for known in (True, False):
        records = [
            StepRecord(
                t,
                totals={"val_accuracy": (20 if t < 4 else 12) / 40, "val_n": 40.0},
                solved=(before if t < 4 else after) if known else "",
            )
            for t in range(20)
        ]
        _, alerts = judged(records, SINGLE)
        steps[known] = alerts[0].step if alerts else 99
    assert steps[True] <= steps[False]
    assert steps[True] < 10


def test_a_reward_alone_is_a_drop() -> None:
    run = single(1, steps=80, accuracy=np.interp(np.arange(80), [0, 40, 41], [0.6, 0.6, 0.4]))
    del run.total["accuracy"]
    run.validate = 0
    _, alerts = judged(run.records(), SINGLE)
    assert findings(alerts) == {("reward_drop", "*")}
    assert alerts[0].severity == "suspicious"


def test_a_role_graded_on_its_own_has_a_verdict_of_its_own() -> None:
    run = Columns(ISOLATED, 2, steps=80)
    run.role["generator", "correct"] = run.rng.binomial(64, run.course({39: 0.7, 40: 0.2})) / 64
    _, alerts = judged(run.records(), ISOLATED)
    assert (NAME, "generator") in findings(alerts)


def test_too_little_is_no_verdict() -> None:
    suite, _ = judged([StepRecord(0, totals={"val_accuracy": 0.5})], SINGLE)
    assert verdict_of(suite, NAME, "*").needs
    suite, _ = judged([StepRecord(0, groups={"generator": {"length": Stat(1, 1.0)}})], SINGLE)
    assert verdict_of(suite, NAME, "*").needs == ("an accuracy or a reward",)


@pytest.mark.parametrize("level", [0.02, 0.1, 0.5])
def test_the_best_of_many_noisy_batches_is_no_height_to_fall_from(level: float) -> None:
    falls = 0
    for seed in range(10):
        rewards = level + 0.04 * np.random.default_rng(seed).normal(size=300)
        records = [
            StepRecord(t + 1, totals={"reward": float(one)}) for t, one in enumerate(rewards)
        ]
        falls += "reward_drop" in {one.finding for one in judged(records, SINGLE)[1]}
    assert falls == 0
