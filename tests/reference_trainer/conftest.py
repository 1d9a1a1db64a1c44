"""A barely trained S model, made once for the whole folder."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from reference_trainer.config import Config, load
from reference_trainer.policies import AdamSettings, AdapterBank, LoraSettings
from reference_trainer.pretrain import load_base, pretrained

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def smoke() -> Config:
    return load("tiny-smoke")


@pytest.fixture(scope="session")
def base_folder(cache: Path, smoke: Config) -> Path:
    return pretrained(smoke.pretrain, smoke.task, prompts=smoke.prompts, cache=cache)


@pytest.fixture
def make_bank(base_folder: Path) -> Callable[..., AdapterBank]:
    def make(*policies: str, seed: int = 0, lr: float = 0.01) -> AdapterBank:
        base, _ = load_base(base_folder)
        adam = AdamSettings(lr=lr, warmup_steps=4)
        return AdapterBank(base, policies, lora=LoraSettings(rank=4), adam=adam, seed=seed)

    return make
