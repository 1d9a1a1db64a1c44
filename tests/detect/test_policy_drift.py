"""Any role's movement is seen, whoever it belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from roledrift.assembly import read_config
from roledrift.config import Config
from roledrift.detect.panel import replay
from roledrift.detect.policy_drift import PolicyDrift
from roledrift.records import Verdict
from roledrift.workflow import EVAL_OPT, ORCH_WORKERS, SINGLE, VOTING

ISOLATED = VOTING.routed("isolated")


def judge(records: Any, workflow: Any, config: Config | None = None) -> dict[str, list[Verdict]]:
    detector = PolicyDrift(workflow, config or Config())
    found: dict[str, list[Verdict]] = {}
    for record in records:
        for verdict in detector.update(record):
            found.setdefault(verdict.role, []).append(verdict)
    return found


@pytest.fixture
def moving(run: Any, ramp: Any, noise: Any) -> Any:
    """Records in which the roles named move a hundred times as far from step 20 on."""

    def make(workflow: Any, hot: Any, *, seed: int = 0, start: int = 20) -> Any:
        rng = np.random.default_rng(seed)
        columns = {
            role: {
                "update.k3": np.array(
                    ramp(5e-4, 0.05 if role in hot else 5e-4, start=start, length=15, steps=70)
                )
                * noise(rng, 70, sd=0.4)
            }
            for role in workflow.role_names
        }
        return run(columns)

    return make


def test_a_single_role_without_slots_is_watched(moving: Any) -> None:
    # Single-agent collapse, noisy rewards: nothing that has to do with multiplicity.
    found = judge(moving(SINGLE, SINGLE.role_names), SINGLE)
    (role,) = SINGLE.role_names
    assert set(found) == {role}
    last = found[role][-1]
    assert (last.state, last.finding) == ("drift", "role_drift")
    assert last.onset is not None
    assert 18 <= last.onset <= 32


def test_a_shared_policy_is_watched_role_by_role(moving: Any) -> None:
    # A hot learning rate under a shared policy may show in the generator alone.
    found = judge(moving(VOTING, ["generator"]), VOTING)
    assert found["generator"][-1].finding == "role_drift"
    assert "the policy is shared with aggregator" in found["generator"][-1].reason
    assert {one.state for one in found["aggregator"]} <= {"no verdict", "ok"}
    assert {one.state for one in found["*"]} <= {"no verdict", "ok"}


@pytest.mark.parametrize("workflow", [VOTING, EVAL_OPT, ORCH_WORKERS, ISOLATED])
def test_all_roles_at_once_are_policy_drift(moving: Any, workflow: Any) -> None:
    found = judge(moving(workflow, workflow.role_names), workflow)
    together = found["*"][-1]
    assert (together.state, together.finding) == ("drift", "policy_drift")
    assert together.onset is not None
    assert 18 <= together.onset <= 32
    assert all(role in together.reason for role in workflow.role_names)
    for role in found.keys() - {"*"}:
        assert found[role][-1].state == "watch"
        assert "all roles do" in found[role][-1].reason


def test_two_of_three_are_two_roles(moving: Any) -> None:
    found = judge(moving(ORCH_WORKERS.routed("shared"), ORCH_WORKERS.role_names[1:]), ORCH_WORKERS)
    assert found["*"][-1].state == "ok"
    first, *others = ORCH_WORKERS.role_names
    assert found[first][-1].state == "ok"
    assert {found[role][-1].finding for role in others} == {"role_drift"}


def test_the_role_with_slots_and_a_policy_is_left_to_amplification(moving: Any) -> None:
    assert set(judge(moving(ISOLATED, ["generator"]), ISOLATED)) == {"*", "aggregator"}
    off = read_config({"detectors": {"gradient_amplification": {"enabled": False}}})
    found = judge(moving(ISOLATED, ["generator"]), ISOLATED, off)
    assert found["generator"][-1].finding == "role_drift"


def test_the_panel_tells_one_role_s_drift_once(moving: Any) -> None:
    opened = list(replay(moving(ISOLATED, ["generator"]), ISOLATED).alerts)
    assert [(one.finding, one.role, one.level) for one in opened] == [
        ("role_drift", "generator", "WARN")
    ]
    opened = list(replay(moving(VOTING, VOTING.role_names), VOTING).alerts)
    assert ("policy_drift", "*", "ERROR") in [(o.finding, o.role, o.level) for o in opened]


@pytest.mark.parametrize("workflow", [SINGLE, VOTING, ISOLATED, ORCH_WORKERS])
def test_healthy_runs_are_quiet(moving: Any, workflow: Any) -> None:
    for seed in range(15):
        found = judge(moving(workflow, [], seed=seed), workflow)
        assert "drift" not in {one.state for its in found.values() for one in its}


def test_it_says_what_is_missing(run: Any) -> None:
    records = run({"generator": {"update.k3": [1e-3] * 20}, "aggregator": {"length": [5.0] * 20}})
    found = judge(records, VOTING)
    assert found["aggregator"][-1].needs[0].startswith("update.k3")
    assert found["generator"][-1].state == "ok"
    assert found["*"][-1].needs == ("the movement of aggregator and its baseline",)
