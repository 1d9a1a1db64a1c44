from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from roledrift.config import Config
from roledrift.detect.accuracy_cliff import AccuracyCliff
from roledrift.records import Stat, StepRecord, Verdict
from roledrift.workflow import EVAL_OPT, VOTING


def judge(records: list[StepRecord]) -> list[Verdict]:
    detector = AccuracyCliff(VOTING, Config())
    return [one for record in records for one in detector.update(record)]


def validated(*values: float, **more: float) -> list[StepRecord]:
    return [
        StepRecord(10 * i, totals={"val_accuracy": value, **more}) for i, value in enumerate(values)
    ]


def test_a_fall_that_stays_is_a_cliff_with_its_onset_and_best() -> None:
    verdicts = judge(validated(0.4, 0.6, 0.8, 0.55, 0.5))
    assert [one.state for one in verdicts] == ["no verdict", "ok", "ok", "watch", "drift"]
    cliff = verdicts[-1]
    assert (cliff.role, cliff.finding, cliff.onset) == ("*", "accuracy_cliff", 30)
    assert (cliff.baseline, cliff.value) == (0.8, 0.5)
    assert "best 0.8 at step 20" in cliff.reason


def test_an_enormous_fall_is_told_at_once() -> None:
    assert judge(validated(0.8, 0.1))[-1].state == "drift"


def test_one_low_validation_and_a_plateau_are_none() -> None:
    assert "drift" not in {one.state for one in judge(validated(0.4, 0.8, 0.55, 0.78, 0.8, 0.79))}


def test_counts_make_the_noise_binomial() -> None:
    drop = (0.32, 0.20, 0.21)
    assert judge(validated(*drop, val_n=2000.0))[-1].state == "drift"
    assert judge(validated(*drop, val_n=30.0))[-1].state != "drift"


def test_training_accuracy_is_averaged_in_blocks() -> None:
    values = [0.8] * 20 + [0.3] * 10
    records = [StepRecord(i, totals={"accuracy": value}) for i, value in enumerate(values)]
    verdicts = [one for one in judge(records) if one.state != "no verdict"]
    assert len(verdicts) == 5
    assert (verdicts[-1].statistic, verdicts[-1].finding) == ("accuracy", "accuracy_cliff")


def test_a_rare_validation_stays_news_beside_training() -> None:
    records = [StepRecord(i, totals={"accuracy": 0.5}) for i in range(60)]
    for step, accuracy in ((10, 0.8), (30, 0.1)):
        records[step] = replace(records[step], totals={"accuracy": 0.5, "val_accuracy": accuracy})
    verdicts = judge(records)
    assert verdicts[-1].state == "drift"
    assert verdicts[-1].statistic == "val_accuracy"


def test_a_reward_alone_gives_the_lesser_name() -> None:
    records = [StepRecord(i, totals={"reward": 3.0 if i < 20 else 0.4}) for i in range(40)]
    assert judge(records)[-1].finding == "reward_drop"


def test_a_reward_beside_an_accuracy_says_nothing() -> None:
    records = [
        StepRecord(i, totals={"accuracy": 0.7, "reward": 3.0 if i < 20 else 0.4}) for i in range(40)
    ]
    assert judge(records)[-1].state == "ok"


def test_a_role_that_is_graded_has_a_verdict_of_its_own() -> None:
    detector = AccuracyCliff(EVAL_OPT, Config())
    last: list[Verdict] = []
    for i in range(40):
        stat = Stat(64, 0.9 if i < 20 else 0.2)
        last += detector.update(StepRecord(i, groups={"evaluator": {"correct": stat}}))
    (final,) = [one for one in last if one.role == "evaluator"][-1:]
    assert (final.state, final.finding) == ("drift", "accuracy_cliff")


@pytest.mark.parametrize("totals", [{}, {"accuracy": float("nan")}])
def test_without_any_of_them_it_says_what_to_hand_over(totals: dict[str, float]) -> None:
    (verdict,) = judge([StepRecord(0, totals=totals)])
    assert verdict.needs == ("an accuracy or a reward in totals",)


def test_recovery_is_ok(run: Any) -> None:
    assert judge(validated(0.8, 0.1, 0.1, 0.8))[-1].state == "ok"
