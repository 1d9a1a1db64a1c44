"""A tiny Qwen3 that vLLM's CPU kernels can serve, and what they need from the environment."""

import os

# Before anything imports vllm, which reads them once.
os.environ.update(
    {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TORCHDYNAMO_DISABLE": "1",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
)

from pathlib import Path

import pytest
import torch

from reference_trainer.config import Config, from_mapping
from reference_trainer.setup import Setup, prepare
from tests.reference_trainer.chat_model import make_chat_model

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_chat_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def config(folder: Path) -> Config:
    """Voting with two policies; coins for rewards, because the untrained model solves nothing."""
    return from_mapping(
        {
            "workflow": "voting",
            "routing": "isolated",
            "prompts": "chat-math",
            "model": {"path": str(folder)},
            "lora": {"rank": 4},
            "rollout": {
                "engine": "vllm",
                "problems": 2,
                "copies": 4,
                "temperature": 0.7,
                "max_new_tokens": 12,
                "vllm": {"block": 32, "eager": True, "rows": 64},
            },
            "train": {"steps": 3, "adam": {"lr": 1e-2, "warmup_steps": 0}},
            "stress": {"kind": "reward_noise", "share": 1.0},
            "validation": {"every": 0},
            "checkpoint": {"every": 1},
            "monitor": {"options": {"sampling": {"canaries": 2}}},
        }
    )


@pytest.fixture(scope="session")
def setup(config: Config) -> Setup:
    """One engine for all tests: starting one takes most of the time."""
    return prepare(config, cache=Path("not used"))
