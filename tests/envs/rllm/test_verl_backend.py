"""rLLM's own ``VerlBackend`` in its own trainer: all of it that needs no GPU workers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rllm
import torch
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf
from rllm.data import Dataset
from rllm.trainer.unified_trainer import UnifiedTrainer
from rllm.trainer.verl.utils import sync_config
from rllm.trainer.verl.verl_backend import VerlBackend
from roledrift_rllm.watch import sampling_of, watched
from verl.trainer.ppo.rollout_corr_helper import compute_offpolicy_metrics

from roledrift import open_run
from tests.envs.rllm.conftest import LONGEST, Engine, Tokenizer, Voting
from tests.envs.rllm.test_watch import logged

RANKS = 5


class Replicas:
    """Rollout servers that have nothing to do."""

    async def sleep_replicas(self) -> None: ...

    async def update_weights(self, step: int) -> None: ...


class Workerless(VerlBackend):
    """The backend without its Ray workers: their log-probabilities are made up."""

    def init_rollout_engine(self, **given: Any) -> Engine:
        self.algorithm_config = given["algorithm_config"]
        self.checkpoint_manager = Replicas()
        self.rollout_engine = Engine()
        self.rollout_engine.tokenizer = self.tokenizer
        self.batches: list[Any] = []
        return self.rollout_engine

    def _get_aggregate_dp_size(self) -> int:
        return RANKS

    async def process_backend_batch(self, trainer_state: Any, **_: Any) -> None:
        batch = self._pad_dataproto_to_world_size(trainer_state.backend_batch)
        noise = torch.randn(batch.batch["rollout_log_probs"].shape, generator=torch.manual_seed(0))
        batch.batch["old_log_probs"] = batch.batch["rollout_log_probs"] + 0.3 * noise
        batch.meta_info["global_token_num"] = batch.batch["attention_mask"].sum(-1).tolist()
        trainer_state.backend_batch = batch

    async def update_policy(self, trainer_state: Any, **_: Any) -> None:
        self.batches.append(trainer_state.backend_batch)

    async def on_train_start(self, trainer_state: Any) -> None:
        self.global_steps = 0


@pytest.fixture
def config(tmp_path: Path) -> DictConfig:
    """rLLM's own configuration for verl, as its command line composes it."""
    assert rllm.__file__ is not None
    folder = str(Path(rllm.__file__).parent / "trainer/config")
    with initialize_config_dir(folder, version_base=None):
        config = compose(
            "unified",
            overrides=[
                "actor_rollout_ref.rollout.name=vllm",
                "actor_rollout_ref.rollout.mode=async",
                "rllm.data.train_batch_size=2",
                "rllm.data.max_prompt_length=8",
                f"rllm.data.max_response_length={LONGEST}",
                "rllm.rollout.n=4",
                "rllm.rollout.train.temperature=0.7",
                "rllm.trainer.total_batches=3",
                "rllm.trainer.total_epochs=1",
                "rllm.trainer.test_freq=-1",
                "rllm.trainer.save_freq=-1",
                f"trainer.default_local_dir={tmp_path / 'checkpoints'}",
            ],
        )
    OmegaConf.set_struct(config, False)
    sync_config(config, [])
    return config


def trained(config: DictConfig, out: Path) -> tuple[UnifiedTrainer, list[dict[str, Any]]]:
    made = UnifiedTrainer(
        watched(Workerless, workflow="voting", out=str(out)),
        config,
        workflow_class=Voting,
        train_dataset=Dataset([{"id": f"p{one}", "question": str(one)} for one in range(8)]),
        backend_args={
            "tokenizer": Tokenizer(),
            "role_worker_mapping": {},
            "resource_pool_manager": SimpleNamespace(get_n_gpus=lambda: 1),
        },
    )
    made.tokenizer = None  # its printing of trajectories wants a real one
    rows = logged(made)
    made.fit()
    return made, rows


def test_a_role_is_what_verl_says_of_its_rows_alone(config: DictConfig, tmp_path: Path) -> None:
    made, rows = trained(config, tmp_path / "run")
    run = open_run(tmp_path / "run")
    assert run.header.host == "rllm.Workerless"
    assert [one.step for one in run.steps()] == [1, 2, 3]
    assert not any(one.faults for one in run.steps())
    for record, batch, row in zip(run.steps(), made.backend.batches, rows, strict=True):
        assert len(batch) == 35, "32 trajectories, filled up for five ranks"
        mine = batch.select_idxs(
            (batch.non_tensor_batch["group_roles"] == "aggregator")
            & ~batch.non_tensor_batch["is_pad_step"]
        )
        theirs = compute_offpolicy_metrics(
            *(mine.batch[name] for name in ("old_log_probs", "rollout_log_probs", "response_mask"))
        )
        assert record.mean("aggregator", "rollout.chi2") == pytest.approx(
            theirs["chi2_token"], rel=1e-5
        )
        assert record.mean("aggregator", "ppl") == pytest.approx(theirs["training_ppl"], rel=1e-5)
        assert record.mean("aggregator", "reward") == pytest.approx(row["reward/aggregator/mean"])
        length = record.stat("generator", "length")
        assert length is not None
        assert length.n == 24
        assert row["roledrift/generator/length"] == pytest.approx(length.mean)
        assert row["response_length/mean"] > 0, "the backend's own hook ran before ours"


def test_problems_episodes_and_groups_are_told_apart(config: DictConfig, tmp_path: Path) -> None:
    trained(config, tmp_path / "run")
    step = open_run(tmp_path / "run").steps()[0]
    spread = step.stat("generator", "zero_variance")
    assert spread is not None
    assert spread.n == 6, "two problems for each of three generators"
    episodes = {one.episode for one in open_run(tmp_path / "run").samples() if one.step == 1}
    assert all(one.startswith("p") and ":" in one for one in episodes)


def test_the_configuration_says_how_was_sampled(config: DictConfig) -> None:
    backend = SimpleNamespace(config=config, tokenizer=Tokenizer())
    how = sampling_of(backend)
    assert (how.temperature, how.rollout_temperature) == (0.7, 0.7)
    assert (how.longest, how.ends, how.on_policy, how.bypass) == (LONGEST, {0, 1}, True, False)
    config.rllm.algorithm.rollout_correction.bypass_mode = True
    config.rllm.async_training.enable = True
    assert sampling_of(backend).bypass
    assert not sampling_of(backend).on_policy
