"""A role that moves too far: found whatever the unit, silent in warm-ups, named by its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from roledrift.detect.detectors.policy_movement import lower_bound, refusal
from roledrift.judgement import Alert, Severity
from roledrift.records import GramRecord, StepRecord
from roledrift.workflow import ORCH_WORKERS, SINGLE, VOTING, Role, Workflow
from tests.detect.runs import (
    AGGREGATOR,
    GENERATOR,
    ISOLATED,
    Columns,
    findings,
    judged,
    single,
    verdict_of,
)

ONSET = 31


def _moving(factor: float, seed: int = 0, **other: object) -> Columns:
    run = Columns(ISOLATED, seed, **other)  # type: ignore[arg-type]
    run.move(GENERATOR, run.course({ONSET - 2: 1.0, ONSET - 1: factor}))
    return run


def _worst(alerts: Sequence[Alert]) -> Severity | None:
    return alerts[-1].severity if alerts else None


@pytest.mark.parametrize("k3", [1e-6, 1e-4, 5e-3])
@pytest.mark.parametrize(("factor", "within"), [(3.0, 14), (10.0, 6)])
def test_one_role_that_moves_farther_is_found(k3: float, factor: float, within: int) -> None:
    for seed in range(3):
        suite, alerts = judged(_moving(factor, seed, k3=k3).records(), ISOLATED)
        assert findings(alerts) == {("role_drift", GENERATOR)}
        assert alerts[0].step <= ONSET + within
        assert alerts[0].onset == pytest.approx(ONSET, abs=2)
        assert _worst(alerts) == "failing"
        assert verdict_of(suite, "policy_movement", AGGREGATOR).state in ("ok", "watch")


def test_another_unit_of_k3_changes_no_verdict() -> None:
    run, tiny = _moving(4.0), _moving(4.0)
    for name, stat in tiny.role:
        if stat.endswith("k3"):
            tiny.role[name, stat] *= 0.01
    (_, here), (_, there) = (judged(one.records(), ISOLATED) for one in (run, tiny))
    assert [(a.id, a.state, a.step, a.severity) for a in here] == [
        (a.id, a.state, a.step, a.severity) for a in there
    ]


@pytest.mark.parametrize("steps", [3, 15, 30])
def test_a_warm_up_of_the_learning_rate_is_healthy(steps: int) -> None:
    for seed in range(4):
        run = Columns(ISOLATED, seed, k3=6e-3)
        run.warm_up(steps)
        assert judged(run.records(), ISOLATED)[1] == []


@pytest.mark.parametrize("steps", [15, 30])
def test_a_warm_up_that_was_not_recorded_is_suspicious_at_most(steps: int) -> None:
    for seed in range(3):
        run = Columns(ISOLATED, seed, k3=6e-3)
        ramp = run.course({1: 1 / steps, steps: 1.0})
        for name in ISOLATED.role_names:
            run.move(name, ramp)
        unknown = [
            replace(one, totals={"accuracy": one.totals["accuracy"]}) for one in run.records()
        ]
        assert _worst(judged(unknown, ISOLATED)[1]) in (None, "suspicious")


def test_one_role_of_a_shared_policy_that_stays_is_suspicious() -> None:
    run = Columns(VOTING, 1)
    run.move(AGGREGATOR, run.course({29: 1.0, 30: 4.0}))
    _, alerts = judged(run.records(), VOTING)
    assert {(one.finding, one.role, one.severity) for one in alerts} == {
        ("role_drift", AGGREGATOR, "suspicious")
    }


def test_a_raised_learning_rate_is_the_cause_of_what_follows() -> None:
    run = Columns(ISOLATED, 2)
    run.warm_up(15, then=run.course({39: 1.0, 40: 5.0}))
    suite, alerts = judged(run.records(), ISOLATED)
    assert (alerts[0].finding, alerts[0].step, alerts[0].severity) == (
        "learning_rate_raised", 41, "suspicious"
    )  # fmt: skip
    (incident,) = suite.incidents
    assert incident.finding in ("role_drift", "policy_drift")
    assert incident.cause == "the learning rate was raised by a factor of 5"
    assert ", after the learning rate was raised by a factor of 5." in incident.sentence
    assert incident.severity == "failing"


def test_all_roles_together_are_policy_drift() -> None:
    run = Columns(VOTING, 3)
    for role in VOTING.role_names:
        run.move(role, run.course({29: 1.0, 30: 6.0}))
    _, alerts = judged(run.records())
    assert ("policy_drift", "*") in findings(alerts)


def test_one_role_alone_is_not_all_of_them() -> None:
    _, alerts = judged(_moving(20.0).records(), ISOLATED)
    assert "policy_drift" not in {name for name, _ in findings(alerts)}


def test_a_run_that_improves_is_suspicious_at_most_until_it_runs_away() -> None:
    for factor, worst in ((3.2, "suspicious"), (15.0, "failing")):
        skill = np.interp(np.arange(60), [0, 18, 46], [0.1, 0.1, 0.95])
        run = single(5, accuracy=skill)
        run.move(GENERATOR, run.course({29: 1.0, 30: factor}))
        _, alerts = judged(run.records()[:45], SINGLE)
        assert findings(alerts) == {("role_drift", GENERATOR)}
        assert _worst(alerts) == worst


def _imported(run: Columns) -> list[StepRecord]:
    """What other tools log: rollout.k3, and a chi2 that straddles zero."""
    records = []
    for one in run.records():
        groups = {}
        for role in run.workflow.role_names:
            stats = one.groups[role]
            chi2 = replace(stats["update.k3"], mean=float(run.rng.normal() * 0.01))
            groups[role] = {"rollout.k3": stats["update.k3"], "rollout.chi2": chi2}
        records.append(replace(one, groups=groups, totals={"accuracy": one.totals["accuracy"]}))
    return records


def test_imported_logs_whose_chi2_straddles_zero_are_judged_by_k3() -> None:
    for seed in range(3):
        _, alerts = judged(_imported(_moving(6.0, seed)), ISOLATED)
        assert findings(alerts) == {("role_drift", GENERATOR)}
        assert judged(_imported(Columns(ISOLATED, seed)), ISOLATED)[1] == []


def test_without_any_distance_there_is_no_verdict() -> None:
    run = Columns(SINGLE)
    run.role = {key: value for key, value in run.role.items() if ".k3" not in key[1]}
    suite, _ = judged(run.records(), SINGLE)
    verdict = verdict_of(suite, "policy_movement", GENERATOR)
    assert verdict.state == "no verdict"
    assert verdict.needs


def _grams(records: Sequence[StepRecord], same: float, apart: float) -> list[StepRecord]:
    rng = np.random.default_rng(0)
    found = []
    for one in records:
        square = np.full((6, 6), apart)
        for a in range(6):
            for b in range(6):
                square[a, b] = 1.0 if a == b else same if a % 2 == b % 2 else apart
        square += np.where(np.eye(6) > 0, 0.0, rng.normal() * 0.02)
        halves = {GENERATOR: tuple(map(tuple, square.tolist()))}
        gram = GramRecord(ISOLATED.policy_of(GENERATOR), (), (), halves=halves)
        found.append(replace(one, gradients=(gram,)))
    return found


@pytest.mark.parametrize(
    ("same", "apart", "finding"),
    [(0.5, 0.0, "gradient_amplification"), (0.5, 0.48, "role_drift"), (0.02, 0.0, "role_drift")],
)
def test_the_papers_name_needs_slots_that_agree_on_a_problem(
    same: float, apart: float, finding: str
) -> None:
    suite, _ = judged(_grams(_moving(6.0).records(), same, apart), ISOLATED)
    verdict = verdict_of(suite, "policy_movement", GENERATOR)
    assert (verdict.state, verdict.finding) == ("drift", finding)
    assert "cosine" in verdict.reason


def test_more_optimizer_steps_than_the_others_are_the_first_suspect() -> None:
    run = _moving(6.0)
    run.role[GENERATOR, "updates"][:] = 3
    suite, _ = judged(_grams(run.records(), 0.5, 0.0), ISOLATED)
    verdict = verdict_of(suite, "policy_movement", GENERATOR)
    assert verdict.finding == "role_drift"
    assert "optimizer steps per iteration: generator 3, aggregator 1" in verdict.reason


@pytest.mark.parametrize(
    ("workflow", "role", "why"),
    [
        (ISOLATED, AGGREGATOR, "the role has one slot"),
        (VOTING, GENERATOR, "the policy is shared"),
        (Workflow("w", (Role("a", 2),), ("p",)), "a", "all roles have several slots"),
        (ORCH_WORKERS.routed("isolated"), "worker", ""),
    ],
)
def test_which_roles_slots_can_amplify(workflow: Workflow, role: str, why: str) -> None:
    assert refusal(workflow, role) == why


def test_the_bound_may_be_looked_at_after_every_record() -> None:
    rng, wrong, runs = np.random.default_rng(7), 0, 60
    for _ in range(runs):
        values = list(rng.normal(size=24))
        wrong += any(lower_bound(values[:n], 4) > 0 for n in range(4, 25))
    assert wrong / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
