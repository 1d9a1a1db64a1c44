from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from reference_trainer.config import Config, from_mapping
from reference_trainer.episodes import Message
from reference_trainer.errors import SettingsError
from reference_trainer.model import ModelSettings, end_ids, load_model
from reference_trainer.rollout.chat import encode
from reference_trainer.setup import prepare
from reference_trainer.trainer import train
from roledrift import open_run
from tests.reference_trainer.chat_model import make_chat_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_chat_model(tmp_path_factory.mktemp("model") / "Tiny-Chat")


def a_run(folder: Path, **model: Any) -> Config:
    return from_mapping(
        {
            "workflow": "voting",
            "routing": "isolated",
            "prompts": "chat-math",
            "model": {"path": str(folder), **model},
            "lora": {"rank": 4},
            "rollout": {"problems": 2, "copies": 2, "temperature": 0.7, "max_new_tokens": 8},
            "train": {"steps": 2, "adam": {"lr": 1e-2, "warmup_steps": 0}},
            "stress": {"kind": "reward_noise", "share": 1.0},
            "validation": {"every": 2, "problems": 2},
            "monitor": {"options": {"sampling": {"canaries": 2}}},
        }
    )


def test_end_tokens_are_the_models_own_list(folder: Path) -> None:
    model, tokenizer = load_model(folder, ModelSettings(path=str(folder)))
    stop, text_end = (
        tokenizer.convert_tokens_to_ids(one) for one in ("<|im_end|>", "<|endoftext|>")
    )
    assert end_ids(model, tokenizer) == (stop, text_end)
    assert model.config.pad_token_id == text_end  # the tokenizer's: the model names none
    model.generation_config.eos_token_id = None
    assert end_ids(model, tokenizer) == (stop,)
    model.config.eos_token_id = tokenizer.eos_token = None
    with pytest.raises(SettingsError, match="names a token that ends an output"):
        end_ids(model, tokenizer)


def test_prompts_go_through_the_chat_template(folder: Path) -> None:
    _, tokenizer = load_model(folder, ModelSettings(path=str(folder)))
    (ids,) = encode([(Message("user", "Solve 1 + 1"),)], tokenizer)
    assert tokenizer.decode(list(ids)) == (
        "<|im_start|>user\nSolve 1 + 1<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )


@pytest.mark.parametrize(
    "model", [{}, {"dtype": "bfloat16"}, {"gradient_checkpointing": True, "attention": "eager"}]
)
def test_a_run_with_a_model_of_its_own(folder: Path, tmp_path: Path, model: dict[str, Any]) -> None:
    config = a_run(folder, **model)
    setup = prepare(config, cache=tmp_path / "cache")
    weights = {parameter.dtype for parameter in setup.bank.parameters_of("generator")}
    assert weights == {torch.float32}
    assert str(setup.bank.causal_lm.dtype) == f"torch.{config.model.dtype}"
    result = train(setup, out=tmp_path / "run")
    assert len(result.steps) == 2
    assert not (tmp_path / "cache").exists()  # nothing was warmed up
    run = open_run(tmp_path / "run")
    assert run.header.scale == "Tiny-Chat"
    for record in run.steps():
        for role in ("generator", "aggregator"):
            peak = record.groups[role]["rollout.peak"].high
            assert peak < (1e-3 if config.model.dtype == "float32" else 0.3)
    assert all(setup.bank.moved(policy) for policy in setup.bank.policies)


def test_checkpointing_changes_only_what_is_kept(folder: Path, tmp_path: Path) -> None:
    losses = []
    for keep in (False, True):
        config = a_run(folder, gradient_checkpointing=keep)
        result = train(prepare(config, cache=tmp_path))
        losses.append(
            [one.loss for step in result.steps for one in step.policies.values()]
            + [one.grad_norm for step in result.steps for one in step.policies.values()]
        )
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"path": "nowhere"}, "'nowhere' is no folder with a model"),
        ({"device": "toaster"}, "model.device 'toaster' is no device"),
    ],
)
def test_models_that_are_not_there(folder: Path, values: dict[str, Any], message: str) -> None:
    settings = replace(ModelSettings(path=str(folder)), **values)
    with pytest.raises(SettingsError, match=message):
        load_model(Path(settings.path), settings)


def test_data_sets_need_a_model_that_can_read() -> None:
    with pytest.raises(SettingsError, match="the tiny base model knows no English"):
        from_mapping({"task": {"name": "dapo_math"}})


def test_vllm_that_is_not_installed(folder: Path, tmp_path: Path) -> None:
    config = a_run(folder)
    config = replace(config, rollout=replace(config.rollout, engine="vllm"))
    with pytest.raises(SettingsError, match="needs vLLM, and `import vllm` failed"):
        prepare(config, cache=tmp_path)
