from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, Qwen3Config, Qwen3ForCausalLM

from reference_trainer.config import load
from reference_trainer.errors import SettingsError
from reference_trainer.grid import load_source
from reference_trainer.planning.shapes import model_config, sizes
from reference_trainer.policies import AdamSettings, AdapterBank, LoraSettings


@pytest.mark.parametrize(
    ("scale", "base"), [("0.6B", 596_049_920), ("1.7B", 1_720_574_976), ("4B", 4_022_468_096)]
)
def test_published_models_have_as_many_weights_as_their_cards_say(scale: str, base: int) -> None:
    assert sizes(load_source(f"paper/voting-ip-math-{scale}", {})).base == base


def test_adapters_are_those_of_the_real_layers() -> None:
    config = load_source("paper/voting-ip-math-0.6B", {})
    shape = model_config(config)
    shape.pad_token_id = 0
    with torch.device("meta"):
        bank = AdapterBank(
            Qwen3ForCausalLM(shape), ("a",), lora=LoraSettings(64), adam=AdamSettings(), seed=0
        )
    size = sizes(config)
    assert size.adapter == sum(one.numel() for one in bank.parameters_of("a"))
    frozen = sum(one.numel() for one in bank.model.parameters() if not one.requires_grad)
    assert size.base == frozen
    assert size.mapped == frozen - size.tied - 28 * (2 * 1024 + 2 * 128) - 1024
    assert size.cached == 2 * 28 * 8 * 128


def test_a_folder_of_a_users_own_model_is_read(tmp_path: Path) -> None:
    LlamaConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=3,
        intermediate_size=64,
        num_attention_heads=4,
        tie_word_embeddings=False,
    ).save_pretrained(tmp_path)
    config = load("voting-ip-healthy", {"model": {"path": str(tmp_path)}, "lora": {"rank": 2}})
    size = sizes(config)
    assert (size.tied, size.broadest, size.vocabulary) == (0, 64, 100)
    assert size.adapter == 3 * 2 * (4 * (32 + 32) + 3 * (32 + 64))


def test_an_unknown_model_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    config = load("voting-ip-healthy", {"model": {"path": "models/Nothing-7B"}})
    with pytest.raises(SettingsError, match=r"not known.*Qwen3-0.6B.*Put the model's config.json"):
        sizes(config)
    (tmp_path / "config.json").write_text("{")
    config = load("voting-ip-healthy", {"model": {"path": str(tmp_path)}})
    with pytest.raises(SettingsError, match="cannot read"):
        sizes(config)


def test_a_run_without_a_model_of_its_own_has_a_tiny_one() -> None:
    assert isinstance(model_config(load("voting-ip-healthy")), Qwen3Config)
    assert sizes(load("voting-ip-healthy")).base < 1_000_000
