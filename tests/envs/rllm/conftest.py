"""rLLM's own trainer, workflow engine and data classes around a model that makes up its answers."""

import os

# Before anything imports rLLM, verl or Ray, which read these once.
os.environ.update(
    {
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
)

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import rllm
import torch
from omegaconf import DictConfig, OmegaConf
from rllm.data import Dataset
from rllm.data.utils import interleave_tasks
from rllm.engine.rollout import ModelOutput, RolloutEngine
from rllm.trainer.backend_protocol import BackendProtocol
from rllm.trainer.unified_trainer import UnifiedTrainer
from rllm.types import Episode, Step, Trajectory
from rllm.workflows.workflow import Workflow

torch.set_num_threads(1)

LONGEST = 24


class Tokenizer:
    """A letter per token."""

    eos_token_id, pad_token_id = 1, 0

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        return "".join(chr(97 + one) for one in ids if one > 1 or not skip_special_tokens)


class Engine(RolloutEngine):
    """Answers of five tokens, the last ends them; the aggregator's grow when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.random, self.aggregator = Random(0), 5

    async def _get_model_response(self, messages: list[dict[str, Any]], **_: Any) -> ModelOutput:
        role = messages[0]["role"]
        length = self.aggregator if role == "aggregator" else self.random.randint(4, 6)
        ids = [self.random.randint(2, 20) for _ in range(length - 1)] + [1]
        return ModelOutput(
            content=Tokenizer().decode(ids, skip_special_tokens=True),
            prompt_ids=[self.random.randint(2, 20) for _ in range(3)],
            completion_ids=ids,
            logprobs=[-self.random.random() for _ in ids],
            finish_reason="stop",
        )


class Voting(Workflow):
    """Three generators and an aggregator; a coin is the reward."""

    async def run(self, task: dict[str, Any], uid: str, **_: Any) -> Episode:
        self.reset(task, uid)
        made = []
        for name in ("generator0", "generator1", "generator2", "aggregator"):
            messages = [{"role": name.rstrip("012"), "content": str(task["question"])}]
            output = await self.rollout_engine.get_model_response(messages)
            step = Step.from_model_output(output, messages=messages)
            reward = float(self.rollout_engine.random.random() < 0.5)  # type: ignore[attr-defined]
            made.append(Trajectory(name=name, steps=[step], reward=reward))
        return Episode(id=uid, task=task, trajectories=made)


class Backend(BackendProtocol[Any, list[Any]]):
    """What a backend must do, without a model: as rLLM's guide to custom backends has it."""

    def __init__(self, config: DictConfig, **_: Any) -> None:
        super().__init__(config)
        self.tokenizer, self.engine = Tokenizer(), Engine()
        self.grows: int | None = None
        self.seen: list[str] = []

    def init_rollout_engine(self, **_: Any) -> RolloutEngine:
        return self.engine

    def validate_config(self) -> None: ...

    def shutdown(self) -> None: ...

    async def generate_episodes(
        self, batch: Any, agent_workflow_engine: Any, is_validation: bool = False, **_: Any
    ) -> list[Episode]:
        tasks, ids = interleave_tasks(batch, self.config.rllm.rollout.n)
        return await agent_workflow_engine.execute_tasks(tasks, ids, is_validation=is_validation)

    def transform_to_backend_batch(self, trainer_state: Any, **_: Any) -> list[Any]:
        return []

    async def process_backend_batch(self, trainer_state: Any, **_: Any) -> None: ...

    async def compute_advantages(self, trainer_state: Any, algorithm_config: Any, **_: Any) -> None:
        await super().compute_advantages(trainer_state, algorithm_config)

    async def update_policy(self, trainer_state: Any, **_: Any) -> None: ...

    async def on_batch_start(self, trainer_state: Any) -> None:
        if self.grows is not None and trainer_state.global_step >= self.grows:
            self.engine.aggregator = 15 + trainer_state.global_step % 2

    async def on_batch_end(self, trainer_state: Any) -> None:
        self.seen.append(f"step {trainer_state.global_step}")


@pytest.fixture
def config(tmp_path: Path) -> DictConfig:
    """rLLM's own defaults; two problems, four rollouts each, per step."""
    assert rllm.__file__ is not None
    loaded = OmegaConf.load(Path(rllm.__file__).parent / "trainer/config/rllm/base.yaml")
    config = OmegaConf.create({"rllm": loaded, "data": {"train_batch_size": 2}})
    config.rllm.data.update({"train_batch_size": 2, "max_response_length": LONGEST})
    config.rllm.rollout.n = 4
    config.rllm.workflow.n_parallel_tasks = 2
    config.rllm.trainer.update(
        {"total_epochs": 1, "total_batches": 30, "test_freq": -1, "project_name": "roledrift"}
    )
    OmegaConf.set_struct(config, True)
    return config


@pytest.fixture
def trainer(config: DictConfig) -> Callable[..., UnifiedTrainer]:
    """RLLM's trainer with this backend."""

    def make(backend: type[Any], workflow: type[Workflow] = Voting) -> UnifiedTrainer:
        tasks = Dataset([{"id": f"p{one}", "question": str(one)} for one in range(80)])
        return UnifiedTrainer(backend, config, workflow_class=workflow, train_dataset=tasks)

    return make
