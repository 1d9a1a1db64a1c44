"""``DataProto`` with the columns of programs that descend from verl, and the recipe for them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from roledrift_verl.batch import Sampling, from_data_proto, role_batch, speakers
from verl import DataProto
from verl.trainer.ppo.metric_utils import compute_data_metrics

from examples.verl_rows import WatchedRows
from roledrift import VOTING, open_run
from roledrift.ingest.roles import RoleMap
from tests.envs.verl.conftest import ROLES, Tokenizer, padded
from tests.envs.verl.test_rows import advantaged

NAMES = ["generator0", "generator1", "generator2", "aggregator"]


def column(values: list[Any]) -> np.ndarray:
    return np.array(values, dtype=object)


def renamed(style: str) -> DataProto:
    """The test's batch under the names of another program; of it only the uid stays."""
    data = advantaged(padded())
    rows = range(len(data))
    for name in ("role", "slot"):
        data.non_tensor_batch.pop(name)
    names, uids = [NAMES[row % 4] for row in rows], data.non_tensor_batch["uid"].tolist()
    episodes = [f"{uid}:{row % 16 // 4}" for row, uid in zip(rows, uids, strict=True)]
    trajectories = [f"{uid}_{name}" for uid, name in zip(uids, names, strict=True)]
    if style in ("rllm 0.2", "rllm 0.3"):
        data.non_tensor_batch["episode_ids"] = column(episodes)
        data.non_tensor_batch["trajectory_ids"] = column(trajectories)
        data.non_tensor_batch["is_pad_step"] = column([row == 5 for row in rows])
        data.non_tensor_batch["uid"] = column(trajectories)
    if style == "rllm 0.3":
        data.non_tensor_batch.pop("uid")
        data.non_tensor_batch["group_roles"] = column(names)
    if style == "dr_mas":
        data.non_tensor_batch["agent_id"] = column(names)
        data.non_tensor_batch["traj_uid"] = column(episodes)
    if style == "pettingllms":
        data.non_tensor_batch["agent_name"] = column(names)
        data.non_tensor_batch["agent_idx"] = column([row % 4 for row in rows])
        data.non_tensor_batch["env_idx"] = column([row // 4 for row in rows])
        data.non_tensor_batch["turn_idx"] = column([row % 4 // 3 for row in rows])
    return data


@pytest.mark.parametrize("style", ["rllm 0.2", "rllm 0.3", "dr_mas", "pettingllms"])
def test_rows_are_told_apart(style: str) -> None:
    rows = from_data_proto(renamed(style))
    who = speakers(rows, RoleMap(), str)
    made = role_batch(VOTING, rows, who, how=Sampling(temperature=0.7, longest=9))
    kept = [row for row in range(32) if row != 5 or not style.startswith("rllm")]
    assert who == [(ROLES[row % 4], row % 4 if row % 4 < 3 else None) for row in kept]
    assert made.episode_B is not None
    assert made.episode_B.tolist() == [row // 4 for row in kept]
    assert made.prompt_B is not None
    assert made.prompt_B.tolist() == [row // 16 for row in kept]
    assert made.group_B is not None
    assert len(set(made.group_B.tolist())) == (8 if style.startswith("rllm") else 2)


@pytest.mark.parametrize("style", ["dr_mas", "pettingllms"])
def test_the_recipe_records_them(style: str, tmp_path: Path) -> None:
    watched = WatchedRows("voting", str(tmp_path / "run"), Tokenizer())
    for step in range(3):
        told = watched.record(renamed(style), step=step)
    watched.monitor.close()
    assert not watched.stop
    data = renamed(style)
    mine = data.select_idxs(np.array([row % 4 == 3 for row in range(len(data))]))
    logged = compute_data_metrics(mine, use_critic=False)
    assert told["roledrift/aggregator/length"] == pytest.approx(logged["response_length/mean"])
    assert told["roledrift/aggregator/reward"] == pytest.approx(logged["critic/score/mean"])
    steps = open_run(tmp_path / "run").steps()
    assert len(steps) == 3
    assert not any(one.faults for one in steps)


def test_rows_before_their_log_probabilities_are_recorded_too(tmp_path: Path) -> None:
    """As a reward manager sees them."""
    data = renamed("dr_mas")
    seen = ("prompts", "responses", "attention_mask", "response_mask", "token_level_scores")
    early = SimpleNamespace(
        batch={name: data.batch[name] for name in seen}, non_tensor_batch=data.non_tensor_batch
    )
    told = WatchedRows("voting", str(tmp_path / "run"), Tokenizer()).record(early, step=0)
    assert "roledrift/aggregator/reward" in told
    assert "roledrift/aggregator/ppl" not in told
    assert open_run(tmp_path / "run").steps()[0].faults == {}


def test_two_policies_of_one_step_are_one_record(tmp_path: Path) -> None:
    data = renamed("pettingllms")
    aggregators = np.array([row % 4 == 3 for row in range(len(data))])
    watched = WatchedRows("voting", str(tmp_path / "run"), Tokenizer())
    told = watched.record(data.select_idxs(~aggregators), data.select_idxs(aggregators), step=0)
    together = WatchedRows("voting", str(tmp_path / "other"), Tokenizer()).record(data, step=0)
    assert told == pytest.approx(together)
