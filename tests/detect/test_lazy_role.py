from __future__ import annotations

from roledrift.detect.lazy_role import LazyRole

from roledrift.config import Config
from roledrift.judgement import Verdict
from roledrift.records import Stat, StepRecord
from roledrift.workflow import EVAL_OPT, ORCH_WORKERS, VOTING, Workflow


def judge(
    workflow: Workflow,
    role: str,
    name: str,
    values: list[float],
    accuracy: list[float],
    n: float = 64,
) -> list[Verdict]:
    detector = LazyRole(workflow, Config())
    records = [
        StepRecord(step, groups={role: {name: Stat(n, value)}}, totals={"accuracy": solved})
        for step, (value, solved) in enumerate(zip(values, accuracy, strict=True))
    ]
    return [one for record in records for one in detector.update(record) if one.role == role]


def stamped(values: list[float], accuracy: list[float], n: float = 64) -> list[Verdict]:
    return judge(EVAL_OPT, "evaluator", "verdict_correct", values, accuracy, n)


def test_a_judge_that_never_says_no_is_a_rubber_stamp_also_while_training_pays() -> None:
    rising = [0.3 + 0.02 * step for step in range(20)]
    found = stamped([0.5] * 5 + [0.99] * 15, rising)[-1]
    assert (found.state, found.finding, found.onset) == ("drift", "rubber_stamp", 5)
    assert "0.99 of 64 verdicts are Correct, while 0.6" in found.reason


def test_a_judge_that_always_says_no_is_one_as_well() -> None:
    assert stamped([0.01] * 6, [0.6] * 6)[-1].finding == "rubber_stamp"


def test_a_judge_that_is_right_to_agree_is_none() -> None:
    assert {one.state for one in stamped([0.97] * 20, [0.93] * 20)} == {"ok"}


def test_few_verdicts_are_pooled() -> None:
    verdicts = stamped([1.0] * 12, [0.5] * 12, n=8)
    # Three records of eight verdicts are one value; three of those in a row are drift.
    assert [one.state for one in verdicts] == [
        *["no verdict"] * 2, "watch", "watch", "drift", "drift",
    ]  # fmt: skip


def test_without_an_accuracy_a_verdict_is_not_held_to_anything() -> None:
    detector = LazyRole(EVAL_OPT, Config())
    record = StepRecord(0, groups={"evaluator": {"verdict_correct": Stat(64, 1.0)}})
    (_, found) = detector.update(record)
    assert found.needs == ("accuracy in totals, to hold the verdicts to",)


def test_when_the_workflow_loses_it_is_a_lazy_role() -> None:
    found = stamped([0.99] * 30, [0.6] * 15 + [0.2] * 15)[-1]
    assert (found.state, found.finding) == ("drift", "lazy_role")


def chosen(kinds: list[float], accuracy: float, n: float = 64) -> list[Verdict]:
    return judge(VOTING, "aggregator", "openers", kinds, [0.4] * 15 + [accuracy] * 15, n)


def test_one_answer_to_every_problem() -> None:
    found = chosen([3.0] * 15 + [1.0] * 15, 0.4)[-1]
    assert (found.state, found.finding, found.onset) == ("drift", "constant_output", 15)


def test_one_answer_is_only_watched_where_it_pays_and_nothing_where_it_was_so_at_the_start() -> (
    None
):
    assert chosen([3.0] * 15 + [1.0] * 15, 0.9)[-1].state == "watch"
    assert chosen([1.0] * 30, 0.4)[-1].state == "ok"
    assert chosen([3.0] * 15 + [1.0] * 15, 0.4, n=5)[-1].state == "no verdict"


def test_a_synthesizer_that_begins_to_copy() -> None:
    def copied(values: list[float]) -> Verdict:
        return judge(ORCH_WORKERS, "synthesizer", "copied", values, [0.4] * 30)[-1]

    assert copied([0.5] * 15 + [0.98] * 15).finding == "copies_input"
    assert copied([0.98] * 30).state == "ok"
    assert copied([0.5] * 15 + [0.8] * 15).state == "ok"


def test_who_solves_or_plans_is_not_judged_and_who_is_says_what_is_missing() -> None:
    verdicts = LazyRole(ORCH_WORKERS, Config()).update(StepRecord(0))
    assert ["does not apply" in one.reason for one in verdicts] == [True, True, False]
    (_, aggregator) = LazyRole(VOTING, Config()).update(StepRecord(0))
    assert aggregator.needs == ("texts of the selecting role",)
