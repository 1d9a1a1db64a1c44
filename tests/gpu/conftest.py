"""What runs on a GPU: ``make test-gpu``; ``ROLEDRIFT_GPU_TESTS=cpu`` runs it all on a CPU."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from benchmarks.chat_model import make_chat_model
from reference_trainer.config import Config
from reference_trainer.grid import load_source

ROWS = Path(__file__).parents[1] / "reference_trainer" / "tasks" / "rows"
ON_CPU = os.environ.get("ROLEDRIFT_GPU_TESTS") == "cpu"
DEVICE = "cpu" if ON_CPU else "cuda"


def needs(package: str) -> pytest.MarkDecorator:
    """Skip where ``package`` is not installed."""
    return pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights: of Qwen3-0.6B's shapes with fewer layers on a GPU, tiny on a CPU."""
    small = {} if ON_CPU else {"hidden_size": 1024, "num_hidden_layers": 4, "head_dim": 128}
    # A vocabulary narrower than the hidden states breaks vLLM's own trial of adapters at its start.
    small |= {} if ON_CPU else {"vocab_size": 4096}
    wide = {} if ON_CPU else {"intermediate_size": 3072, "num_attention_heads": 16}
    shape = small | wide | ({} if ON_CPU else {"num_key_value_heads": 8, "initializer_range": 0.02})
    return make_chat_model(tmp_path_factory.mktemp("model") / "random", shape=shape)


@pytest.fixture
def deterministic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two runs on a GPU add in the same order; by default they do not, monitored or not."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def config(folder: Path) -> Config:
    """Voting with two policies; coins for rewards, because random weights solve nothing."""
    return load_source(
        "paper/voting-ip-math-0.6B",
        {
            "model": {
                "path": str(folder),
                "device": DEVICE,
                "dtype": "float32" if ON_CPU else "bfloat16",
            },
            "lora": {"rank": 8},
            "task": {"source": str(ROWS / "dapo_math.jsonl")},
            "rollout": {
                "engine": "transformers",
                "problems": 2,
                "copies": 4,
                "max_new_tokens": 6 if ON_CPU else 64,
            },
            "rules": {"max_prompt_tokens": 1500},
            "train": {"steps": 2, "microbatch": 4, "adam": {"lr": 1e-2, "warmup_steps": 0}},
            "stress": {"kind": "reward_noise", "share": 1.0},
            "validation": {"every": 0, "problems": 2},
            "checkpoint": {"every": 1},
        },
    )
