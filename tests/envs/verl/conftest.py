"""What verl needs from the environment, and one step's batch as verl's own functions make it."""

import os

# Before anything imports verl or Ray, which read them once.
os.environ.update(
    {
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_prestart_worker_first_driver": "0",  # one idle process per core otherwise
        "RAY_worker_niceness": "0",  # Ray starts its workers at 15: on a busy machine, never
        "VERL_USE_EXTERNAL_MODULES": "roledrift_verl.plugin",  # as verl up to 0.8 is told
    }
)

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
import verl
from omegaconf import DictConfig, OmegaConf
from tensordict import TensorDict
from verl import DataProto

torch.set_num_threads(1)

if find_spec("verl.plugin") is not None:  # verl 0.9: its own workers run here, too
    import tests.envs.verl.cpu_platform  # noqa: F401

ROLES = ["generator", "generator", "generator", "aggregator"]
PROBLEMS, ROLLOUTS, WIDTH, PROMPT = 2, 4, 9, 5


class Tokenizer:
    """A letter per token: what a real one would be asked here."""

    eos_token_id = 1
    pad_token_id = 0

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        return "".join(chr(97 + one) for one in ids if one > 1 or not skip_special_tokens)


@pytest.fixture(scope="session")
def config() -> DictConfig:
    """verl's own default configuration, watched."""
    assert verl.__file__ is not None
    file = Path(verl.__file__).parent / "trainer/config/_generated_ppo_trainer.yaml"
    loaded = OmegaConf.load(file)
    assert isinstance(loaded, DictConfig)
    OmegaConf.set_struct(loaded, False)
    loaded.actor_rollout_ref.rollout.temperature = 0.7
    loaded.actor_rollout_ref.rollout.calculate_log_probs = True
    loaded.actor_rollout_ref.rollout.name = "vllm"
    loaded.data.max_response_length = WIDTH
    return loaded


def padded(seed: int = 0) -> DataProto:
    """Every problem is rolled out four times; each rollout has three generators, an aggregator."""
    random = torch.Generator().manual_seed(seed)
    rows = PROBLEMS * ROLLOUTS * len(ROLES)
    length = torch.randint(2, WIDTH + 1, (rows,), generator=random)
    mask = (torch.arange(WIDTH) < length[:, None]).long()
    start = torch.randint(0, PROMPT, (rows,), generator=random)
    prompt = (torch.arange(PROMPT) >= start[:, None]).long()
    old = -torch.rand((rows, WIDTH), generator=random) * 3
    rollout = old + 0.3 * torch.randn((rows, WIDTH), generator=random)
    score = torch.zeros(rows, WIDTH)
    score[torch.arange(rows), length - 1] = torch.randint(0, 2, (rows,), generator=random).float()
    tensors = {
        "prompts": torch.randint(2, 20, (rows, PROMPT), generator=random) * prompt,
        "responses": torch.randint(2, 20, (rows, WIDTH), generator=random) * mask,
        "response_mask": mask,
        "attention_mask": torch.cat([prompt, mask], 1),
        "old_log_probs": old * mask,
        "rollout_log_probs": rollout * mask,
        "token_level_scores": score,
        "token_level_rewards": score,
    }
    return DataProto(
        batch=TensorDict(tensors, batch_size=rows),
        non_tensor_batch={
            "uid": np.array([f"p{row // 16}" for row in range(rows)], dtype=object),
            "role": np.array(ROLES * (rows // 4), dtype=object),
            "slot": np.array([0, 1, 2, 0] * (rows // 4), dtype=object),
        },
    )


@pytest.fixture
def batch() -> DataProto:
    return padded()
