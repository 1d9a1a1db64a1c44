"""What a log has only of all roles together is judged by every card that it says something to."""

from __future__ import annotations

import numpy as np
import pytest

from roledrift.detect.conclusion import conclude
from roledrift.detect.suite import DetectorSuite
from roledrift.sums import EVERYONE
from roledrift.workflow import SINGLE, VOTING
from tests.detect import logged
from tests.detect.runs import Columns

STEPS = 240
LATE = np.arange(STEPS) > 120
OLDER = ("training_data", "length_inflation", "entropy_collapse", "policy_movement")


def _of(suite: DetectorSuite, detector: str) -> set[str]:
    return {one.role for one in suite.verdicts if one.detector == detector}


@pytest.mark.parametrize("seed", range(3))
def test_a_healthy_aggregate_log_of_several_roles_is_clean_on_most_verdicts(seed: int) -> None:
    suite, _, names = logged.told(logged.healthy(seed), VOTING, EVERYONE)
    found = conclude(suite.verdicts, suite.incidents, STEPS)
    assert names == set()
    assert found.outcome == "clean"
    assert 2 * found.reached >= found.applicable


def test_what_is_known_of_all_roles_is_not_asked_of_each() -> None:
    run = logged.healthy() | {"update.k3": np.full(STEPS, 1e-4)}
    suite, _, _ = logged.told(run, VOTING, EVERYONE)
    assert {name: _of(suite, name) for name in OLDER} == {name: {EVERYONE} for name in OLDER}


@pytest.mark.parametrize(
    ("name", "factor", "finding"),
    [("length", 2.5, "length_inflation"), ("entropy", 0.1, "entropy_collapse")],
)
def test_a_change_of_all_roles_together_is_found(name: str, factor: float, finding: str) -> None:
    run = logged.healthy()
    run[name] = run[name] * np.where(LATE, factor, 1.0)
    run["reward"] = run["reward"] * np.where(np.arange(STEPS) > 140, 0.4, 1.0)
    _, alerts, names = logged.told(run, VOTING, EVERYONE)
    assert finding in names
    assert {one.role for one in alerts if one.finding == finding} == {EVERYONE}


def test_truncation_of_all_roles_together_is_found() -> None:
    run = logged.healthy()
    run["truncated"] = np.where(LATE, 0.8, run["truncated"])
    assert "truncation" in logged.told(run, VOTING, EVERYONE)[2]


def test_movement_of_all_roles_together_is_policy_drift() -> None:
    noise = np.exp(np.random.default_rng(0).normal(0, 0.3, STEPS))
    run = logged.healthy() | {"lr": np.full(STEPS, 1e-6), "update.k3": 1e-4 * noise}
    assert "policy_drift" not in logged.told(run, VOTING, EVERYONE)[2]
    run["update.k3"] = run["update.k3"] * np.where(LATE, 60.0, 1.0)
    assert "policy_drift" in logged.told(run, VOTING, EVERYONE)[2]


def test_nothing_is_judged_twice_where_roles_have_it_themselves() -> None:
    from roledrift.records import StepRecord

    suite = DetectorSuite(VOTING)
    for record in Columns(VOTING).records():
        every = {**record.groups, EVERYONE: record.groups["generator"]}
        suite.update(StepRecord(record.step, groups=every, totals=record.totals))
    twice = [name for name in (*OLDER, "rollout_engine") if EVERYONE in _of(suite, name)]
    # All policies together are another question, and it is asked of the roles' own numbers.
    assert twice == ["policy_movement"]


@pytest.mark.parametrize(
    "kept", [("reward",), ("reward", "entropy"), ("reward", "lr", "grad_norm")]
)
@pytest.mark.parametrize("workflow", [SINGLE, VOTING])
def test_a_log_that_allows_few_verdicts_is_never_clean(
    kept: tuple[str, ...], workflow: object
) -> None:
    run = {name: values for name, values in logged.healthy().items() if name in kept}
    role = logged.ROLE if workflow is SINGLE else EVERYONE
    suite, _, _ = logged.told(run, workflow, role)
    assert conclude(suite.verdicts, suite.incidents, STEPS).outcome != "clean"
