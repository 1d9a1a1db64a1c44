"""Settings, rewards, engine and rows: what is found before any policy has moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
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
    verdict_of,
)

# --- settings_changed


@pytest.mark.parametrize("warm_up", [1, 3, 15, 30])
def test_a_learning_rate_raised_after_its_warm_up_is_found_in_that_step(warm_up: int) -> None:
    run = Columns(ISOLATED)
    run.warm_up(warm_up, then=run.course({39: 1.0, 40: 1.5}))
    first = judged(run.records(), ISOLATED)[1][0]
    assert (first.finding, first.role, first.step, first.onset) == (
        "learning_rate_raised", "*", 41, 41
    )  # fmt: skip
    assert first.cause == "the learning rate was raised by a factor of 1.5"


def test_the_learning_rate_of_one_policy_is_that_of_its_role() -> None:
    run = Columns(ISOLATED)
    run.total["lr/generator"] = run.total["lr"] * run.course({29: 1.0, 30: 3.0})
    _, alerts = judged(run.records(), ISOLATED)
    assert findings(alerts) == {("learning_rate_raised", GENERATOR)}


def _steps(run: Columns) -> None:
    run.role[GENERATOR, "updates"] *= run.course({29: 1.0, 30: 3.0})


def _paid(run: Columns) -> None:
    run.role[AGGREGATOR, "reward_bias"] = run.course({29: 0.0, 30: 0.2})


@pytest.mark.parametrize(
    ("change", "finding", "role"),
    [(_steps, "optimizer_steps_changed", GENERATOR), (_paid, "reward_changed", AGGREGATOR)],
)
def test_other_settings(change: Callable[[Columns], None], finding: str, role: str) -> None:
    run = Columns(VOTING)
    change(run)
    _, alerts = judged(run.records())
    (found,) = [one for one in alerts if one.finding == finding and one.state == "open"]
    assert (found.role, found.onset, found.layer) == (role, 31, "setting")
    assert found.step <= 32


def test_batch_size_and_temperature() -> None:
    def record(one: object, t: int, n: float, heat: str) -> object:
        groups = {**one.groups, "*": {**one.groups["*"], "length": Stat(n, 1.0)}}  # type: ignore[attr-defined]
        return replace(one, groups=groups, labels={"rollout": f"T={heat} against T={heat}"})  # type: ignore[type-var]

    records = Columns(VOTING).records()
    larger = [record(one, t, 64 if t < 30 else 128, "1.0") for t, one in enumerate(records)]
    assert findings(judged(larger)[1]) == {("batch_changed", "*")}  # type: ignore[arg-type]
    hotter = [record(one, t, 64, "1.0" if t < 30 else "1.3") for t, one in enumerate(records)]
    _, alerts = judged(hotter)  # type: ignore[arg-type]
    assert findings(alerts) == {("temperature_changed", "*")}
    assert alerts[0].cause == "the sampling temperature changed from 1.0 to 1.3"


# --- reward_hacking


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
    assert suite.incidents[0].cause == "its reward stopped being that of the other roles"


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


# --- rollout_engine


def _mismatch(run: Columns, role: str, factor: object) -> None:
    run.role[role, "rollout.k3"] *= np.asarray(factor) ** 2
    for name in ("rollout.peak", "rollout.log_ppl_abs_diff"):
        run.role[role, name] *= factor


@pytest.mark.parametrize("k3", [2e-3, 1e-2])
@pytest.mark.parametrize("workflow", [VOTING, ISOLATED, SINGLE])
def test_a_constant_mismatch_is_silent_and_withholds_nothing(k3: float, workflow: object) -> None:
    run = Columns(workflow, 1)  # type: ignore[arg-type]
    for role in run.workflow.role_names:
        _mismatch(run, role, (k3 / 1e-4) ** 0.5)
    suite, alerts = judged(run.records(), run.workflow)
    assert alerts == []
    assert not [one for one in suite.verdicts if "withheld" in one.reason]


def test_an_engine_that_leaves_the_policy_is_an_input_problem() -> None:
    for seed in range(3):
        run = Columns(ISOLATED, seed)
        _mismatch(run, GENERATOR, run.course({29: 1.0, 30: 6.0}))
        _, alerts = judged(run.records(), ISOLATED)
        assert findings(alerts) == {("engine_mismatch", GENERATOR)}
        assert (alerts[0].severity, alerts[0].step) <= ("input problem", 40)


def test_a_policy_that_moves_farther_takes_the_distance_along() -> None:
    run = Columns(ISOLATED, 1)
    run.role[GENERATOR, "updates"][:] = 3
    factor = run.course({29: 1.0, 30: 6.0})
    run.move(GENERATOR, factor)
    _mismatch(run, GENERATOR, factor)
    assert "engine_mismatch" not in {one.finding for one in judged(run.records(), ISOLATED)[1]}


def test_a_base_model_that_is_served_instead_of_the_adapter() -> None:
    run = Columns(ISOLATED, 1)
    run.role[GENERATOR, "reference.k3"] = 0.01 + 0.05 * np.arange(run.steps) / run.steps
    run.role[GENERATOR, "rollout.k3"] = run.role[GENERATOR, "reference.k3"].copy()
    _, alerts = judged(run.records(), ISOLATED)
    assert ("adapter_not_served", GENERATOR) in findings(alerts)


def test_log_probabilities_of_two_kinds() -> None:
    run = Columns(ISOLATED, 1)
    run.role[GENERATOR, "rollout.refused"] = np.ones(run.steps)
    _, alerts = judged(run.records(), ISOLATED)
    assert findings(alerts) == {("logprob_mode_mismatch", GENERATOR)}
    assert alerts[0].step == 1


# --- training_data


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
