"""A barely trained S model, made once for the whole folder."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch

from reference_trainer.config import Config, load
from reference_trainer.policies import AdamSettings, AdapterBank, LoraSettings
from reference_trainer.pretrain import load_base, pretrained
from reference_trainer.stress import Stress

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


@pytest.fixture(scope="session")
def noisy(smoke: Config) -> Config:
    """Coins for rewards: the barely trained model solves nothing, so nothing else would move it."""
    return replace(smoke, stress=Stress("reward_noise", share=1.0))


@pytest.fixture(scope="session")
def make_bank(base_folder: Path) -> Callable[..., AdapterBank]:
    def make(
        *policies: str,
        seed: int = 0,
        lr: float = 0.01,
        rank: int = 4,
        optimizers: Literal["per_policy", "one"] = "per_policy",
        lr_factors: Mapping[str, float] | None = None,
        rule: Literal["adamw", "sgd"] = "adamw",
    ) -> AdapterBank:
        base, _ = load_base(base_folder)
        # Plain SGD, to its full length: no decay, no limit of the norm.
        plain = {"weight_decay": 0.0, "max_grad_norm": 1e9} if rule == "sgd" else {}
        adam = AdamSettings(rule=rule, lr=lr, warmup_steps=4, optimizers=optimizers, **plain)
        lora = LoraSettings(rank=rank)
        return AdapterBank(base, policies, lora=lora, adam=adam, seed=seed, lr_factors=lr_factors)

    return make
