"""Sizes of a base model and its adapters, from its configuration alone: no weights are read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig

from reference_trainer.config import Config
from reference_trainer.errors import SettingsError
from reference_trainer.planning.step_on_shapes import Trained
from reference_trainer.tiny_model import build_config


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers, not bytes.

    Attributes:
        base: Weights of the base model.
        tied: Those of them that an embedding shares with the output layer; 0 if it does not.
        mapped: Those of the linear layers that adapters are added to.
        largest: Of the decoder's layers, the one with the most weights.
        broadest: Most inputs or outputs of a linear layer.
        adapter: Weights of one adapter.
        cached: Keys and values of one token.
        vocabulary: Tokens that can be drawn.
    """

    base: int
    tied: int
    mapped: int
    largest: int
    broadest: int
    adapter: int
    cached: int
    vocabulary: int


def trained(config: Config) -> Trained:
    """The model of a run as :func:`~reference_trainer.planning.step_on_shapes.step_cost` reads it.

    Raises:
        SettingsError: If the model's configuration is not known.
    """
    return Trained(
        config=json.dumps(model_config(config).to_diff_dict(), sort_keys=True, default=str),
        dtype=config.model.dtype,
        rank=config.lora.rank,
        attention=config.model.attention,
        checkpointing=config.model.gradient_checkpointing,
    )


def model_config(config: Config) -> PretrainedConfig:
    """Configuration of the base model: of its folder, or as it was published under that name.

    Raises:
        SettingsError: If there is neither.
    """
    if not config.model.path:
        return build_config(config.pretrain.size)
    folder = Path(config.model.path)
    if (folder / "config.json").is_file():
        try:
            own: PretrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError) as error:
            raise SettingsError(f"cannot read {folder / 'config.json'}: {error}") from error
        return own
    published = resources.files("reference_trainer") / "presets" / "models"
    file = published / f"{folder.name}.json"
    if not file.is_file():
        known = sorted(
            file.name[:-5] for file in published.iterdir() if file.name.endswith(".json")
        )
        raise SettingsError(
            f"the shapes of model.path {config.model.path!r} are not known: there is no "
            f"config.json in it, and its name is none of {', '.join(known)}. Put the model's "
            "config.json there (the weights are not needed), or set model.path to a folder with one"
        )
    values = json.loads(file.read_text("utf-8"))
    return AutoConfig.for_model(values.pop("model_type"), **values)


def sizes(config: Config) -> Sizes:
    """Sizes of the base model and the adapters of a run."""
    text = json.dumps(model_config(config).to_diff_dict(), sort_keys=True, default=str)
    return _sizes(text, config.lora.rank)


@lru_cache(maxsize=64)
def _sizes(text: str, rank: int) -> Sizes:
    values = json.loads(text)
    config = AutoConfig.for_model(values.pop("model_type"), **values)
    with torch.device("meta"):
        model = cast(Any, AutoModelForCausalLM).from_config(config)
    head = model.get_output_embeddings()
    tied = head.weight is model.get_input_embeddings().weight
    maps = [
        module for module in model.modules() if isinstance(module, nn.Linear) and module is not head
    ]
    heads = config.num_key_value_heads or config.num_attention_heads
    head_size = getattr(config, "head_dim", None) or (
        config.hidden_size // config.num_attention_heads
    )
    return Sizes(
        base=sum(parameter.numel() for parameter in model.parameters()),
        tied=head.weight.numel() if tied else 0,
        mapped=sum(linear.weight.numel() for linear in maps),
        largest=max(
            sum(parameter.numel() for parameter in layer.parameters())
            for layer in model.model.layers
        ),
        broadest=max(max(linear.in_features, linear.out_features) for linear in maps),
        adapter=sum(rank * (linear.in_features + linear.out_features) for linear in maps),
        cached=2 * config.num_hidden_layers * heads * head_size,
        vocabulary=config.vocab_size,
    )
