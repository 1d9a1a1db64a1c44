"""The trainer of verl up to 0.8, which 0.9 still has: its methods and its statistics."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import verl
from omegaconf import DictConfig
from roledrift_verl import plugin
from roledrift_verl.wire import ORDER, REPORT, ROLE, Report
from verl import DataProto
from verl.trainer.ppo import metric_utils, ray_trainer
from verl.trainer.ppo.ray_trainer import AdvantageEstimator, RayPPOTrainer, compute_advantage
from verl.utils import tensordict_utils as tu

from roledrift import open_run
from tests.envs.verl.conftest import Tokenizer, padded

SCORES = not verl.__version__.startswith("0.8")
"""verl 0.8 takes flash_attn, which needs a GPU, to take out padding before it scores."""


class Workers:
    """verl's worker group: scores what it is given, ragged, as the engine workers do."""

    def compute_log_prob(self, data: Any) -> Any:
        lengths = [len(one) for one in data["input_ids"].unbind()]
        ragged = torch.nested.as_nested_tensor(
            [torch.full((n,), 0.5) for n in lengths], layout=torch.jagged
        )
        return tu.get_tensordict(
            {"entropy": ragged, "log_probs": -ragged}, non_tensor_dict={"metrics": {"mfu": 0.1}}
        )

    def update_actor(self, data: Any) -> Any:
        metrics: dict[str, Any] = {"grad_norm": [0.5], "mfu": [0.1]}
        self.asked = ROLE in data.keys()  # noqa: SIM118 - a TensorDict
        if self.asked:
            self.roles = data[ROLE].tolist()
            told = {"faults": {"worker loss: KeyError": 2}, "coverage": "not measured: a test"}
            metrics[REPORT] = [Report(data[ORDER].step, 0, **told)]
        return tu.get_tensordict({}, non_tensor_dict={"metrics": metrics})


class Trainer(RayPPOTrainer):
    """verl's trainer, with a fit() of its own as recipes have one."""

    def __init__(self, config: DictConfig) -> None:
        self.config = config
        self.tokenizer = Tokenizer()
        self.actor_rollout_wg = Workers()
        self.use_legacy_worker_impl = "disable"
        self.use_critic = False
        self.total_training_steps = 3
        self.logged: list[dict[str, float]] = []

    def fit(self) -> None:
        self.global_steps = 0
        self._load_checkpoint()
        self.global_steps += 1
        for seed in range(3):
            batch = padded(seed)
            batch.batch["input_ids"] = torch.cat(
                [batch.batch["prompts"], batch.batch["responses"]], 1
            )
            batch.batch["position_ids"] = (batch.batch["attention_mask"].cumsum(1) - 1).clamp(min=0)
            batch.meta_info["temperature"] = 0.7
            if SCORES:
                result = self._compute_old_log_prob(batch)
                scored: DataProto = result[0] if isinstance(result, tuple) else result
                scored.batch.pop("entropys")
            done = compute_advantage(batch, adv_estimator=AdvantageEstimator.GRPO, num_repeat=4)
            if SCORES:
                columns = set(done.batch.keys())
                done.batch["old_log_probs"] = scored.batch["old_log_probs"]
                self.metrics = self._update_actor(done).meta_info["metrics"]
                assert set(done.batch.keys()) == columns
                assert ORDER not in done.meta_info
            self.logged.append(ray_trainer.compute_data_metrics(batch=done, use_critic=False))
            self.global_steps += 1


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    yield
    plugin._WATCHED.clear()


@pytest.fixture
def place(config: DictConfig, tmp_path: Path) -> DictConfig:
    mine = deepcopy(config)
    mine.trainer.merge_with(
        {"default_local_dir": str(tmp_path / "checkpoints"), "resume_mode": "disable"}
    )
    return mine


def test_statistics_are_added_to_verls(place: DictConfig, tmp_path: Path) -> None:
    place.roledrift = {"workflow": "voting"}
    trainer = Trainer(place)
    trainer.fit()
    records = list(open_run(tmp_path / "checkpoints" / "roledrift").steps())
    assert [one.step for one in records] == [1, 2, 3]
    told = {"worker loss: KeyError": 2} if SCORES else {}
    assert [dict(one.faults) for one in records] == [told] * 3
    if SCORES:
        assert trainer.actor_rollout_wg.roles == [0, 0, 0, 1] * 8
        assert set(trainer.metrics) == {"actor/grad_norm", "perf/mfu/actor"}
        assert records[0].labels["gradients"] == "not measured: a test"
        assert "workers" not in records[0].labels
        assert records[0].mean("generator", "update.k3") == 0  # these workers never learn
    for row, record in zip(trainer.logged, records, strict=True):
        mean = (
            24 * row["roledrift/generator/length"] + 8 * row["roledrift/aggregator/length"]
        ) / 32
        assert mean == pytest.approx(row["response_length/mean"], rel=1e-6)
        assert record.totals["reward"] == pytest.approx(row["critic/score/mean"])
        # What verl takes out of the batch before its statistics is kept for ours.
        if SCORES:
            assert row["roledrift/generator/entropy"] == pytest.approx(0.5)
        assert "roledrift/generator/rollout.chi2" in row


def test_without_configuration_the_statistics_are_verls(place: DictConfig, tmp_path: Path) -> None:
    trainer = Trainer(place)
    trainer.fit()
    assert not any(key.startswith("roledrift") for row in trainer.logged for key in row)
    assert not (tmp_path / "checkpoints").exists()
    assert not (SCORES and trainer.actor_rollout_wg.asked)


def test_the_environment_configures_it(
    place: DictConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLEDRIFT_WORKFLOW", "voting")
    monkeypatch.setenv("ROLEDRIFT_OUT", str(tmp_path / "run"))
    Trainer(place).fit()
    assert len(list(open_run(tmp_path / "run").steps())) == 3


def test_the_environment_says_who_is_who(
    place: DictConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ROLEDRIFT_ROLES maps names that the batch has to roles of the workflow."""
    monkeypatch.setenv("ROLEDRIFT_WORKFLOW", "eval_opt")
    monkeypatch.setenv("ROLEDRIFT_ROLES", "aggregator=evaluator")
    trainer = Trainer(place)
    trainer.fit()
    records = list(open_run(tmp_path / "checkpoints" / "roledrift").steps())
    counts = [records[0].stat(role, "length") for role in ("generator", "evaluator")]
    assert [one and one.n for one in counts] == [24, 8]
    place.roledrift = {"roles": "aggregator=generator"}  # the configuration comes first
    place.roledrift.out = str(tmp_path / "second")
    Trainer(place).fit()
    (first, *_) = open_run(tmp_path / "second").steps()
    stat = first.stat("generator", "length")
    assert stat is not None
    assert stat.n == 32


def test_checkpoints_and_validations_are_noted(place: DictConfig, tmp_path: Path) -> None:
    trainer = Trainer(place)
    trainer.global_steps = 0
    place.roledrift = {"workflow": "voting", "out": str(tmp_path / "run")}
    trainer._load_checkpoint()
    (watch,) = plugin._WATCHED
    trainer.global_steps = 1
    watch.validated({"val-core/math/acc/mean@1": 0.5, "val-aux/math/reward/mean@1": 0.1})
    (tmp_path / "checkpoints" / "global_step_1").mkdir(parents=True)
    watch.saved()
    done = compute_advantage(padded(), adv_estimator=AdvantageEstimator.GRPO, num_repeat=4)
    metric_utils.compute_data_metrics(done, use_critic=False)
    (record,) = open_run(tmp_path / "run").steps()
    assert record.totals["val_accuracy"] == 0.5
    assert [one.path for one in record.checkpoints] == [
        str(tmp_path / "checkpoints" / "global_step_1")
    ]


def test_a_batch_that_cannot_be_read_is_counted(place: DictConfig, tmp_path: Path) -> None:
    trainer = Trainer(place)
    trainer.global_steps = 0
    place.roledrift = {"workflow": "voting", "out": str(tmp_path / "run")}
    trainer._load_checkpoint()
    trainer.global_steps = 1
    done = compute_advantage(padded(), adv_estimator=AdvantageEstimator.GRPO, num_repeat=4)
    done.non_tensor_batch["slot"][:] = "third"
    logged = metric_utils.compute_data_metrics(done, use_critic=False)
    assert "critic/score/mean" in logged
    (record,) = open_run(tmp_path / "run").steps()
    assert list(record.faults) == ["batch: ValueError"]


def test_the_wrapped_functions_keep_their_names() -> None:
    assert ray_trainer.compute_data_metrics is metric_utils.compute_data_metrics
    assert ray_trainer.compute_data_metrics.__name__ == "compute_data_metrics"
    assert RayPPOTrainer._load_checkpoint.__name__ == "_load_checkpoint"


def test_simple_namespace_batches_need_no_verl() -> None:
    """What the descendants hand over only has to look like a DataProto."""
    from roledrift_verl.batch import from_data_proto

    batch = padded()
    like = SimpleNamespace(batch=batch.batch, non_tensor_batch=batch.non_tensor_batch)
    assert from_data_proto(like).prompts == from_data_proto(batch).prompts
