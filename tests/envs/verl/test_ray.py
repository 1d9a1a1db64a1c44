"""Everything of verl but sampling and validation, over Ray: its trainer, workers, checkpoints."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
import torch
import transfer_queue as tq
from omegaconf import DictConfig
from roledrift_verl.wire import COLUMNS
from verl.single_controller.ray.base import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
from verl.utils import tensordict_utils as tu

from roledrift.store.reader import open_run
from tests.envs.verl.actor import CPUActor, actor_config, columns, jagged, tiny_model
from tests.envs.verl.conftest import ROLES
from tests.envs.verl.test_v1 import Trainer, logged, place, queue_with

__all__ = ["place"]

ROWS = 32


@pytest.fixture(scope="module", autouse=True)
def queue() -> Iterator[None]:
    yield from queue_with(cpus=6)  # a worker takes one each, as does the queue


class Buffer:
    """Rollouts of random words: per problem and copy three generators and an aggregator."""

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> Any:
        data: dict[str, Any] = columns(ROWS, seed=global_steps)
        keys, tags = [], []
        lengths = data["responses"].offsets().diff().tolist()
        for row, length in enumerate(lengths):
            keys.append(f"step{global_steps}-{row // 16}_{row % 16 // 4}_{row % 4}")
            size = length + len(data["prompts"].unbind()[row])
            tags.append({"seq_len": size, "prompt_len": size - length, "response_len": length})
            tags[-1] |= {"min_global_steps": global_steps - 1, "max_global_steps": global_steps - 1}
        scores = [torch.zeros(length) for length in lengths]
        for row, score in enumerate(scores):
            score[-1] = float(row % 16 // 4 % 2)
        data |= {
            "rm_scores": jagged(scores),
            "rollout_log_probs": jagged([torch.full((length,), -3.4) for length in lengths]),
            "uid": [key.split("_")[0] for key in keys],
            "extra_fields": [{"role": ROLES[row % 4], "slot": row % 4 % 3} for row in range(ROWS)],
            "num_turns": [2] * ROWS,
        }
        fields = tu.get_tensordict(data)
        return tq.kv_batch_put(keys, partition_id, fields=fields, tags=tags), {}


@pytest.fixture
def watched(place: DictConfig, tmp_path: Path) -> DictConfig:
    mine = actor_config(place, tiny_model(tmp_path / "model"))
    mine.actor_rollout_ref.actor.ppo_mini_batch_size = 8  # of problems with 4 rollouts: one step
    mine.actor_rollout_ref.actor.checkpoint.save_contents = ["model", "optimizer", "extra"]
    mine.trainer.save_freq = 1
    mine.roledrift = {
        "workflow": "voting",
        "config": {"gradients": {"every": 1, "store": "full"}, "rescore": {"rows_per_role": 3}},
    }
    return mine


@pytest.fixture
def actors(watched: DictConfig) -> Iterator[Any]:
    """Two of verl's workers, in processes of Ray's."""
    pool = RayResourcePool([2], use_gpu=False, max_colocate_count=1)
    made = RayClassWithInitArgs(
        cls=ray.remote(CPUActor), config=watched.actor_rollout_ref, role="actor"
    )
    group = RayWorkerGroup(pool, made, device_name="cpu")
    group.init_model()
    yield group
    for worker in group.workers:
        ray.kill(worker)


def train(config: DictConfig, actors: Any, steps: int) -> None:
    trainer = Trainer(config, steps, actors)
    trainer.replay_buffer = Buffer()  # type: ignore[assignment]
    trainer.fit(agent_loop_manager=None)


def test_two_workers_then_resumed(
    watched: DictConfig, actors: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(watched, actors, 2)
    rows = [row for row in logged(tmp_path) if "actor/grad_norm" in row]
    watched.trainer.resume_mode = "auto"
    watched.roledrift.roles = "ignored=generator"
    train(watched, actors, 4)  # from verl's checkpoint of step 2
    rows += [row for row in logged(tmp_path) if "actor/grad_norm" in row]
    assert [row["training/global_step"] for row in rows] == [1, 2, 3, 4]
    watched.trainer.resume_mode = "resume_path"
    watched.trainer.resume_from_path = str(tmp_path / "checkpoints" / "global_step_3")
    train(watched, actors, 4)  # step 4 once more, as after a crash
    again = [row for row in logged(tmp_path) if "actor/grad_norm" in row]
    assert [row["training/global_step"] for row in again] == [4]
    rows[3:] = again
    said = capsys.readouterr().err
    assert said.count(" watches verl.Trainer: generator x3, aggregator; run directory") == 1
    assert said.count(" continues to watch verl.Trainer: generator x3, aggregator;") == 2

    run = open_run(tmp_path / "checkpoints" / "roledrift")
    records = list(run.steps())
    assert [one.step for one in records] == [1, 2, 3, 4]
    assert len(run.segments) == 3
    for row, record in zip(rows, records, strict=True):
        assert dict(record.faults) == {}
        assert not {"workers", "gradients"} & set(record.labels)
        assert record.labels["old"].endswith("T=0.7, 0 steps between")
        assert record.labels["update"] == (
            "after vs before the optimizer step, T=0.7, 1 step between"
        )
        (gram,) = record.gradients
        products = np.array(gram.products)
        # Over two ranks the gradient is the mean, as FSDP's is; verl's number is of the same one.
        assert np.sqrt(products.sum()) == pytest.approx(row["actor/grad_norm"], rel=1e-4)
        for role in ("generator", "aggregator"):
            assert record.mean(role, "old.k3") == pytest.approx(0, abs=1e-9)
            assert row[f"roledrift/{role}/update.k3"] > 1e-6
            moved = record.stat(role, "updates")
            assert moved is not None
            assert moved.mean == 1
        assert "roledrift/aggregator/grad_norm" in row
        assert not any(name in key for key in row for name in (*COLUMNS, "roledrift_"))
