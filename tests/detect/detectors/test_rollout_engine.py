"""An engine that does not sample the policy that is trained."""

from __future__ import annotations

import numpy as np
import pytest

from roledrift.workflow import SINGLE, VOTING
from tests.detect.runs import (
    GENERATOR,
    ISOLATED,
    Columns,
    findings,
    judged,
)


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


def test_a_constant_mismatch_stays_none_while_the_policy_speeds_up_and_slows_down() -> None:
    for seed in range(3):
        run = Columns(ISOLATED, seed)
        run.role[GENERATOR, "updates"][:] = 3
        run.move(GENERATOR, run.course({1: 0.05, 14: 5.0, 20: 5.0, 21: 0.02}))
        _mismatch(run, GENERATOR, 30.0)
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
