"""verl's V1 trainer: its own fit(), TransferQueue, advantages, statistics and file logger.

In place of GPUs there is a model of one vector. What samples, scores and updates is here; all that
the plugin touches is verl's.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import torch
import transfer_queue as tq
from omegaconf import DictConfig, OmegaConf
from roledrift_verl.plugin import install
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.metric_utils import compute_data_metrics
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.utils import tensordict_utils as tu

from roledrift import open_run
from roledrift.errors import ConfigError, StoreError
from tests.envs.verl.conftest import PROMPT, ROLES, WIDTH, Tokenizer

SYMBOLS = 20


def queue_with(*, cpus: int) -> Iterator[None]:
    ray.init(num_cpus=cpus, include_dashboard=False, object_store_memory=80 * 2**20)
    storage = {"num_data_storage_units": 1, "total_storage_size": 1000}
    tq.init(OmegaConf.create({"backend": {"SimpleStorage": storage}}))
    yield
    tq.close()
    ray.shutdown()


@pytest.fixture(scope="module", autouse=True)
def queue() -> Iterator[None]:
    yield from queue_with(cpus=2)


def jagged(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


class Workers:
    """The actor of verl's worker group: one vector of logits."""

    def __init__(self) -> None:
        self.logits = torch.zeros(SYMBOLS)
        self._dispatch_info = {"actor": [0]}
        self.updates = 0

    def compute_log_prob(self, batch: KVBatchMeta) -> KVBatchMeta:
        data = tq.kv_batch_get(batch.keys, batch.partition_id, ["prompts", "responses"])
        logp = torch.log_softmax(self.logits / 0.7, 0)
        whole = [
            torch.cat([prompt, response])
            for prompt, response in zip(*(data[k].unbind() for k in data.keys()), strict=True)  # noqa: SIM118
        ]
        entropy = -(logp.exp() * logp).sum()
        fields = {
            "log_probs": jagged([logp[ids.roll(-1)] for ids in whole]),
            "entropy": jagged([entropy.expand(len(ids)).clone() for ids in whole]),
        }
        return tq.kv_batch_put(batch.keys, batch.partition_id, fields=tu.get_tensordict(fields))

    def update_actor(self, batch: KVBatchMeta) -> Any:
        self.updates += 1
        self.logits = self.logits + 0.05 * torch.arange(SYMBOLS) / SYMBOLS
        return {"metrics": {"grad_norm": [0.5], "mfu": [0.1]}}

    def save_checkpoint(self, *_: Any, **__: Any) -> None:
        """There is nothing to keep."""


class Buffer:
    """Rollouts: per problem and copy three generators and an aggregator, as an agent loop would."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.random = torch.Generator().manual_seed(0)
        self.longest = lambda _step: WIDTH

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> Any:
        keys, tags = [], []
        columns: dict[str, list[Any]] = {name: [] for name in ("prompts", "responses", "rm_scores")}
        columns |= {name: [] for name in ("response_mask", "rollout_log_probs")}
        columns |= {name: [] for name in ("uid", "extra_fields", "num_turns")}
        logp = torch.log_softmax(self.workers.logits / 0.7, 0)
        for row in range(2 * 4 * len(ROLES)):
            problem, copy, index = row // 16, row % 16 // 4, row % 4
            uid = f"step{global_steps}-{problem}"
            top = self.longest(global_steps)
            length = int(torch.randint(top // 2, top + 1, (1,), generator=self.random))
            ids = torch.randint(2, SYMBOLS, (length,), generator=self.random)
            score = torch.zeros(length)
            score[-1] = float(copy % 2)
            noise = 0.2 * torch.randn(length, generator=self.random)
            values = {
                "prompts": torch.arange(2, 2 + PROMPT) + problem,
                "responses": ids,
                "rm_scores": score,
                "response_mask": torch.ones(length, dtype=torch.int64),
                "rollout_log_probs": logp[ids] + noise,
                "uid": uid,
                "extra_fields": {"role": ROLES[index], "slot": index % 3},
                "num_turns": 2,
            }
            for name, value in values.items():
                columns[name].append(value)
            keys.append(f"{uid}_{copy}_{index}")
            tags.append(
                {"seq_len": PROMPT + length, "prompt_len": PROMPT, "response_len": length}
                | {"min_global_steps": global_steps - 1, "max_global_steps": global_steps - 1}
            )
        tensors = {
            k: jagged(v) if isinstance(v[0], torch.Tensor) else v for k, v in columns.items()
        }
        fields = tu.get_tensordict(tensors)
        return tq.kv_batch_put(keys, partition_id, fields=fields, tags=tags), {}


class Trainer(PPOTrainer):
    """verl's trainer without what needs GPUs."""

    def __init__(self, config: DictConfig, steps: int, workers: Any = None) -> None:
        super().__init__(config)
        self.tokenizer = Tokenizer()
        self.actor_rollout_wg = workers or Workers()
        self.replay_buffer = Buffer(self.actor_rollout_wg)
        self.reward_loop_manager = SimpleNamespace(reward_loop_worker_handles=[])
        self.total_training_steps = self.steps_per_epoch = steps
        self.train_dataloader = SimpleNamespace(state_dict=dict, load_state_dict=print)
        self._dump_executor = None
        self._load_checkpoint()

    def _validate(self) -> dict[str, float]:
        return {"val-core/math/acc/mean@1": 0.25 + self.global_steps / 100}

    def prepare_step(self) -> dict[str, Any]:
        return {}  # there is no dataloader

    def _shutdown_dump_executor(self) -> None:
        """Nothing is dumped."""

    def _get_n_gpus_for_throughput(self) -> int:
        return 1

    def get_llm_client(self) -> Any:
        raise NotImplementedError


for _name in getattr(Trainer, "__abstractmethods__", ()):
    setattr(Trainer, _name, lambda self, *_, **__: None)
Trainer.__abstractmethods__ = frozenset()


@pytest.fixture
def place(config: DictConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DictConfig:
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(tmp_path / "log.jsonl"))
    mine = deepcopy(config)
    mine.trainer.merge_with(
        {
            "default_local_dir": str(tmp_path / "checkpoints"),
            "logger": ["file"],
            "test_freq": 2,
            "save_freq": -1,
            "total_epochs": 99,
            "resume_mode": "disable",
            "rollout_data_dir": None,
        }
    )
    mine.actor_rollout_ref.actor.ppo_mini_batch_size = 9  # so that verl adds padding rows
    mine.actor_rollout_ref.rollout.n = 4
    mine.data.train_batch_size = 2
    mine.algorithm.adv_estimator = "grpo"
    return mine


def logged(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line)["data"] for line in (folder / "log.jsonl").read_text().splitlines()]


def train(config: DictConfig, steps: int = 3) -> Trainer:
    trainer = Trainer(config, steps)
    trainer.fit(agent_loop_manager=None)
    return trainer


def test_watched_from_the_configuration_alone(
    place: DictConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.roledrift = {"workflow": "voting", "out": str(tmp_path / "run")}
    train(place)
    assert (
        "watches verl.Trainer: generator x3, aggregator; run directory" in capsys.readouterr().err
    )
    rows = logged(tmp_path)
    steps = [row for row in rows if "actor/grad_norm" in row]
    assert [row["training/global_step"] for row in steps] == [1, 2, 3]
    run = open_run(tmp_path / "run")
    records = list(run.steps())
    assert [one.step for one in records] == [1, 2, 3]
    assert [dict(one.faults) for one in records] == [{}, {}, {}]
    for row, record in zip(steps, records, strict=True):
        # 24 of the 32 rows are generators'; the rows that verl added to fill up are not counted.
        for role, count in (("generator", 24), ("aggregator", 8)):
            stat = record.stat(role, "length")
            assert stat is not None
            assert stat.n == count
            for name in ("length", "reward", "ppl", "entropy", "rollout.chi2"):
                stat = record.stat(role, name)
                assert stat is not None
                assert row[f"roledrift/{role}/{name}"] == pytest.approx(stat.mean)
        mean = (
            24 * row["roledrift/generator/length"] + 8 * row["roledrift/aggregator/length"]
        ) / 32
        assert mean == pytest.approx(row["response_length/mean"], rel=1e-6)
        assert row["roledrift/generator/reward"] == pytest.approx(row["critic/score/mean"])
        assert record.totals["reward"] == pytest.approx(row["critic/score/mean"])
    assert records[1].totals["val_accuracy"] == pytest.approx(0.27)
    assert {one.role for one in run.samples()} == {"generator", "aggregator"}


def test_rows_are_scored_again_after_the_update(place: DictConfig, tmp_path: Path) -> None:
    place.roledrift = {
        "workflow": "voting",
        "out": str(tmp_path / "run"),
        "config": {"rescore": {"rows_per_role": 99}},
    }
    trainer = Trainer(place, 1)
    sample, seen = trainer.replay_buffer.sample, []

    def keeping(**kwargs: Any) -> Any:
        batch, more = sample(**kwargs)
        seen.extend(tq.kv_batch_get(batch.keys, batch.partition_id, ["responses"])["responses"])
        return batch, more

    trainer.replay_buffer.sample = keeping
    trainer.fit(agent_loop_manager=None)
    (record,) = open_run(tmp_path / "run").steps()
    moved = torch.log_softmax(trainer.actor_rollout_wg.logits / 0.7, 0).double()
    before = torch.full_like(moved, 1 / SYMBOLS).log()
    for role in ("generator", "aggregator"):
        ids = torch.cat([one for row, one in enumerate(seen) if ROLES[row % 4] == role])
        d = (moved - before)[ids]
        assert record.mean(role, "update.k3") == pytest.approx(
            float((d.exp() - d - 1).mean()), rel=1e-4
        )
        assert record.mean(role, "update.chi2") == pytest.approx(
            float(((2 * d).exp() - 1).mean()), rel=1e-4
        )
    assert record.labels["update"].endswith("T=0.7, 1 step between")
    # These workers are none of verl's, and say nothing of what the loss saw.
    assert record.labels["workers"].startswith("no report of the update")
    assert dict(record.faults) == {}


def test_nothing_is_changed_by_watching(place: DictConfig, tmp_path: Path) -> None:
    plain = deepcopy(place)
    train(plain)
    before = logged(tmp_path)
    place.roledrift = {"workflow": "voting", "out": str(tmp_path / "run")}
    train(place)
    for one, two in zip(before, logged(tmp_path), strict=True):
        mine = {key for key in two if not key.startswith("roledrift/")}
        assert mine == set(one)
        timed = ("timing", "perf/")
        assert {k: v for k, v in one.items() if not k.startswith(timed)} == {
            k: two[k] for k in mine if not k.startswith(timed)
        }


def test_it_is_inert_without_configuration(place: DictConfig, tmp_path: Path) -> None:
    train(place, steps=1)
    assert not any(key.startswith("roledrift") for row in logged(tmp_path) for key in row)
    assert not (tmp_path / "checkpoints" / "roledrift").exists()


def test_a_wrong_configuration_ends_before_the_training(place: DictConfig, tmp_path: Path) -> None:
    place.roledrift = {"workflow": "voting", "role": "x"}
    with pytest.raises(
        ConfigError, match=r"unknown setting roledrift\.role .*did you mean 'roles'"
    ):
        train(place)
    place.roledrift = {"workflow": "votting"}
    with pytest.raises(ConfigError, match="Did you mean 'voting'"):
        train(place)
    place.roledrift = {"workflow": "voting", "roles": "0=critic"}
    with pytest.raises(ConfigError, match="no role 'critic'"):
        train(place)


def test_a_second_training_needs_another_directory(place: DictConfig, tmp_path: Path) -> None:
    place.roledrift = {"workflow": "voting", "out": str(tmp_path / "run")}
    train(place, steps=1)
    with pytest.raises(StoreError):
        train(place, steps=1)


def test_roles_that_nobody_names_are_said_once(
    place: DictConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.roledrift = {"workflow": "eval_opt", "out": str(tmp_path / "run")}
    trainer = Trainer(place, 2)
    sample = trainer.replay_buffer.sample

    def nameless(**kwargs: Any) -> Any:
        batch, more = sample(**kwargs)
        fields = tu.get_tensordict({"extra_fields": [{}] * len(batch.keys)})
        return tq.kv_batch_put(batch.keys, batch.partition_id, fields=fields), more

    trainer.replay_buffer.sample = nameless
    trainer.fit(agent_loop_manager=None)
    assert capsys.readouterr().err.count("no row names one of ['generator', 'evaluator']") == 1
    first = next(iter(open_run(tmp_path / "run").steps()))
    assert first.faults["unknown role"] == 32


def test_a_finding_makes_the_next_step_the_last(
    place: DictConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.roledrift = {
        "workflow": "voting",
        "out": str(tmp_path / "run"),
        "config": {
            # All roles grow together, which length_inflation takes for a change of the task.
            "stop_on": ["truncation"],
            "budget": 0.0,  # steps of a moment: not all would be recorded
        },
    }
    trainer = Trainer(place, 30)
    trainer.replay_buffer.longest = lambda step: 4 if step <= 10 else WIDTH
    trainer.fit(agent_loop_manager=None)
    updates = trainer.actor_rollout_wg.updates
    assert 10 < updates < 30
    assert f"roledrift stops the run: step {updates} is the last one" in capsys.readouterr().err
    assert "val-core/math/acc/mean@1" in logged(tmp_path)[-1]  # verl ended as it always does


def test_the_entry_point_is_found_by_verl() -> None:
    """In a process of its own, without VERL_USE_EXTERNAL_MODULES; workers load nothing heavy."""
    code = (
        "import sys, verl; print('roledrift_verl.plugin' in sys.modules);"
        "print('roledrift' in sys.modules);"
        "from verl.trainer.ppo.metric_utils import compute_data_metrics as f;"
        "print(hasattr(f, '__roledrift__'))"
    )
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("VERL_", "PYTHONPATH"))}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, env=clean, check=True
    )
    assert done.stdout.split() == ["True", "False", "True"]
    off = {**clean, "VERL_USE_EXTERNAL_PLUGINS": "none"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, env=off, check=True
    )
    assert done.stdout.split() == ["False", "False", "False"]


def test_installing_twice_changes_nothing() -> None:
    before = (PPOTrainer._compute_metrics, compute_data_metrics, len(sys.meta_path))
    install()
    assert before == (PPOTrainer._compute_metrics, compute_data_metrics, len(sys.meta_path))


def test_chi2_in_the_log_is_verls(place: DictConfig, tmp_path: Path) -> None:
    """With rollout correction on, verl logs its own pooled chi2 of the same tokens."""
    place.algorithm.rollout_correction = {"rollout_is": None, "rollout_rs": None}
    place.actor_rollout_ref.actor.ppo_mini_batch_size = 8  # no padding rows: verl counts them
    place.roledrift = {"workflow": "voting", "out": str(tmp_path / "run")}
    train(place, steps=1)
    (record,) = open_run(tmp_path / "run").steps()
    (row,) = (one for one in logged(tmp_path) if "actor/grad_norm" in one)
    pooled = record.stat("*", "rollout.chi2")
    assert pooled is not None
    assert pooled.mean == pytest.approx(row["rollout_corr/chi2_token"], rel=1e-4)
