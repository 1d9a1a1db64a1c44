"""A setting that was changed is reported in the step of the change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from roledrift.records import Stat
from roledrift.workflow import VOTING
from tests.detect.runs import (
    AGGREGATOR,
    GENERATOR,
    ISOLATED,
    Columns,
    findings,
    judged,
)


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
