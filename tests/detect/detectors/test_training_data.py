"""Facts about the rows that are trained on, from the first step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roledrift.workflow import Workflow
from tests.detect.runs import (
    AGGREGATOR,
    GENERATOR,
    ISOLATED,
    Columns,
    judged,
    verdict_of,
)


@pytest.mark.parametrize(
    ("stat", "value", "finding"),
    [
        ("duplicates", 0.25, "duplicate_rows"),
        ("nonfinite", 0.5, "nonfinite"),
        ("nonfinite", np.nan, "nonfinite"),
        ("update.peak", 0.0, "no_updates"),
        ("truncated", 0.6, "truncation"),
    ],
)
def test_facts_are_found_in_the_third_record(stat: str, value: float, finding: str) -> None:
    run = Columns(ISOLATED, 1, steps=12)
    run.role[GENERATOR, stat][:] = value
    suite, alerts = judged(run.records(), ISOLATED)
    (found,) = [one for one in alerts if one.finding == finding]
    assert (found.role, found.step, found.onset, found.severity) == (
        GENERATOR, 3, 1, "input problem"
    )  # fmt: skip
    assert verdict_of(suite, "training_data", AGGREGATOR).state == "ok"


@pytest.mark.parametrize(("rates", "found"), [([0.0] * 9, True), ([1e-5] * 8 + [0.0], False)])
def test_a_rate_of_zero_trains_nothing(rates: list[float], found: bool) -> None:
    """In the last step alone it is how a schedule ends."""
    records = Columns(ISOLATED, 1, steps=12).records()
    changed = [
        replace(record, totals={**record.totals, "lr": rate})
        for record, rate in zip(records[-9:], rates, strict=True)
    ]
    _, alerts = judged([*records[:-9], *changed], ISOLATED)
    assert ("no_updates" in {alert.finding for alert in alerts}) == found


def only_acting(workflow: Workflow, name: str) -> Workflow:
    roles = tuple(replace(one, trained=one.name != name) for one in workflow.roles)
    return replace(workflow, roles=roles)


@pytest.mark.parametrize("trained", [True, False])
def test_a_role_that_is_not_trained_is_judged_by_its_outputs_alone(trained: bool) -> None:
    workflow = ISOLATED if trained else only_acting(ISOLATED, AGGREGATOR)
    run = Columns(workflow, 1, steps=40)
    run.move(AGGREGATOR, 0.0)
    run.role[AGGREGATOR, "updates"][:] = 0
    run.role[AGGREGATOR, "zero_variance"][:] = 1.0
    run.role[AGGREGATOR, "grad_norm"] = np.zeros(run.steps)
    run.role[AGGREGATOR, "truncated"][20:] = 0.6
    suite, alerts = judged(run.records(), workflow)
    findings = {one.finding for one in alerts if one.role == AGGREGATOR}
    if trained:
        assert {"no_updates", "gradient_zero"} & findings
    else:
        assert findings == {"truncation"}
        assert verdict_of(suite, "gradients", AGGREGATOR).state == "no verdict"
        assert "nothing trains" in verdict_of(suite, "gradients", AGGREGATOR).reason


@pytest.mark.parametrize(("accuracy", "found"), [(0.97, False), (0.03, True), (0.5, True)])
def test_equal_rewards_are_a_finding_unless_the_task_is_solved(
    accuracy: float, found: bool
) -> None:
    run = Columns(ISOLATED, 1, accuracy=np.full(60, accuracy))
    for role in run.workflow.role_names:
        run.role[role, "zero_variance"][:] = 1.0
    suite, alerts = judged(run.records(), ISOLATED)
    assert ("signal_loss" in {one.finding for one in alerts}) is found
    if accuracy < 0.1:
        assert "the task is too hard" in verdict_of(suite, "training_data", GENERATOR).reason


def test_truncation_that_falls_is_no_finding_and_one_that_rises_is() -> None:
    for start, end, found in ((0.22, 0.04, False), (0.02, 0.3, True)):
        run = Columns(ISOLATED, 1)
        run.role[GENERATOR, "truncated"] = run.course({20: start, 40: end})
        _, alerts = judged(run.records(), ISOLATED)
        assert ("truncation" in {one.finding for one in alerts}) is found
        assert {one.severity for one in alerts} <= {"suspicious"}


def test_a_fact_that_holds_now_and_then_is_none() -> None:
    run = Columns(ISOLATED, 1)
    run.role[GENERATOR, "duplicates"][::3] = 0.5
    assert judged(run.records(), ISOLATED)[1] == []
