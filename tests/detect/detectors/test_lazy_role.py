"""Roles whose output does not matter."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from roledrift.detect.detectors import lazy_role
from roledrift.records import StepRecord
from roledrift.workflow import EVAL_OPT, ORCH_WORKERS, VOTING
from tests.detect.courses import FALLS, LEVEL, RISES, STEPS, line
from tests.detect.judging import found, judge, records


def verdicts(correct: Sequence[float], accuracy: Sequence[float]) -> list[StepRecord]:
    return records({"evaluator": {"verdict_correct": correct}}, {"accuracy": accuracy})


def test_a_judge_that_always_stamps_is_a_fact_from_the_first_step() -> None:
    alerts, _ = judge(lazy_role.CARD, verdicts([1.0] * STEPS, RISES), EVAL_OPT)
    assert found(alerts) == {("rubber_stamp", "evaluator")}
    assert alerts[0].severity == "suspicious"
    assert alerts[0].onset == 1


@pytest.mark.parametrize("truth", [0.97, 0.5])
def test_verdicts_are_held_to_the_truth(truth: float) -> None:
    said = [truth] * STEPS
    assert not judge(lazy_role.CARD, verdicts(said, [truth] * STEPS), EVAL_OPT)[0]


def test_a_judge_that_begins_to_stamp_counts_where_nothing_is_gained() -> None:
    said = line(0.4, 1.5)
    assert not judge(lazy_role.CARD, verdicts(said, RISES), EVAL_OPT)[0]
    alerts, _ = judge(lazy_role.CARD, verdicts(said, FALLS), EVAL_OPT)
    assert found(alerts) == {("lazy_role", "evaluator")}
    assert alerts[-1].severity == "failing"


def test_without_accuracy_a_judge_is_not_judged() -> None:
    alerts, last = judge(
        lazy_role.CARD, records({"evaluator": {"verdict_correct": [1.0] * 20}}), EVAL_OPT
    )
    assert not alerts
    assert last["evaluator"].state == "no verdict"


def test_a_selector_that_gives_one_answer_and_a_synthesizer_that_copies() -> None:
    openers = [4.0] * 25 + [1.0] * 35
    alerts, _ = judge(
        lazy_role.CARD, records({"aggregator": {"openers": openers}}, {"accuracy": LEVEL}), VOTING
    )
    assert found(alerts) == {("constant_output", "aggregator")}
    alerts, _ = judge(
        lazy_role.CARD,
        records({"synthesizer": {"copied": line(0.5, 1.0)}}, {"accuracy": LEVEL}),
        ORCH_WORKERS,
    )
    assert found(alerts) == {("copies_input", "synthesizer")}
