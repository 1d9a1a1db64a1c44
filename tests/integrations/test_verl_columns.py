"""Columns as programs that descend from verl fill them; read in their sources."""

from typing import Any

import pytest
from roledrift_verl.columns import inherited

from roledrift.ingest.roles import RoleMap

PAPER = {
    "episode_ids": ["7f-3:0", "7f-3:0"],
    "trajectory_ids": ["7f-3_generator2", "7f-3_aggregator"],
    "step_ids": ["7f-3_generator2_step0", "7f-3_aggregator_step1"],
    "uid": ["7f-3_generator2_step0", "7f-3_aggregator_step1"],
}
RLLM = {
    "episode_ids": ["p_1:4"],
    "trajectory_ids": ["p_1_plan_maker"],
    "group_roles": ["plan_maker"],
}
DR_MAS = {"agent_id": ["Solver Agent"], "traj_uid": ["t-9"], "wg_id": ["w"], "uid": ["u"]}
PETTING = {"agent_name": ["Designer"], "agent_idx": [0], "env_idx": [5], "turn_idx": [1]}


@pytest.mark.parametrize(
    ("columns", "row", "found"),
    [
        (PAPER, 0, {"role": "generator2", "problem": "7f-3", "episode": "7f-3:0"}),
        (PAPER, 1, {"role": "aggregator", "problem": "7f-3", "episode": "7f-3:0"}),
        (
            *(RLLM, 0),
            {"role": "plan_maker", "problem": "p_1", "uid": "p_1:plan_maker", "episode": "p_1:4"},
        ),
        (
            *({**RLLM, "episode_ids": ["p_1:plan_maker"]}, 0),
            {"role": "plan_maker", "problem": "p_1", "uid": "p_1:plan_maker"},
        ),
        (DR_MAS, 0, {"role": "Solver Agent", "episode": "t-9"}),
        (PETTING, 0, {"role": "Designer", "episode": 5, "turn": 1}),
    ],
)
def test_who_a_row_is_from(columns: dict[str, list[Any]], row: int, found: dict[str, Any]) -> None:
    assert inherited(columns, row) == found


def test_the_numbered_names_of_the_papers_code_are_slots() -> None:
    who = [RoleMap().resolve(inherited(PAPER, row)["role"]) for row in (0, 1)]
    assert who == [("generator", 2), ("aggregator", None)]


def test_verls_own_columns_say_nothing_here() -> None:
    assert inherited({"uid": ["a"], "agent_name": ["tool_agent"], "request_id": ["r"]}, 0) == {}
