"""Whose row it is, in the columns of programs that descend from verl, in the words used here.

rLLM, the code of arXiv 2605.24202 (a fork of rLLM 0.2.1), Dr. MAS and PettingLLMs train on verl's
``DataProto`` and each name roles and episodes in columns of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Columns = Mapping[str, Sequence[Any]]


def inherited(columns: Columns, row: int) -> dict[str, Any]:
    """``role``, ``episode``, ``turn``, ``uid`` (advantage group), ``problem`` as far as given.

    Args:
        columns: Of a ``DataProto``: its ``non_tensor_batch``.
        row: Which row of it.

    Returns:
        Empty if the columns are verl's own.
    """
    if "trajectory_ids" in columns and "episode_ids" in columns:
        return _rllm(columns, row)
    if "agent_id" in columns and "traj_uid" in columns:  # Dr. MAS
        return {"role": columns["agent_id"][row], "episode": columns["traj_uid"][row]}
    # verl itself has a column agent_name: there it names the agent loop.
    if "agent_name" in columns and "agent_idx" in columns and "env_idx" in columns:
        facts = {"role": columns["agent_name"][row], "episode": columns["env_idx"][row]}
        return {**facts, "turn": columns["turn_idx"][row]} if "turn_idx" in columns else facts
    return {}


def _rllm(columns: Columns, row: int) -> dict[str, Any]:
    """A trajectory is called ``{problem}_{name}``, an episode ``{problem}:{number}``."""
    trajectory = str(columns["trajectory_ids"][row])
    if "group_roles" in columns:
        name = str(columns["group_roles"][row])
        problem = trajectory.removesuffix(f"_{name}")
        facts = {"role": name, "problem": problem, "uid": f"{problem}:{name}"}
    else:  # up to 0.2; its uid is there already
        problem, _, name = trajectory.rpartition("_")
        facts = {"role": name, "problem": problem}
    episode = str(columns["episode_ids"][row])
    # Where groups of trajectories are streamed, rLLM has their name in place of the episode's.
    return facts if episode == f"{problem}:{name}" else {**facts, "episode": episode}
