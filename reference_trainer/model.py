"""The base model: which one, in which precision, and where it computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from reference_trainer.errors import SettingsError

Dtype = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The base model of every adapter.

    Attributes:
        path: Folder with a causal language model and its tokenizer, as ``save_pretrained`` and the
            hub's snapshots have them, for example ``/models/Qwen3-1.7B``. Empty: a tiny model,
            warmed up as ``[pretrain]`` says.
        dtype: Of its frozen weights and of the computation. Adapters are float32 either way.
        device: ``auto`` is the GPU if there is one; for the tiny models always the CPU, which is no
            slower for them and gives the same bits everywhere.
        attention: Implementation of the attention.
        gradient_checkpointing: Compute activations again in the backward pass.
    """

    path: str = ""
    dtype: Dtype = "float32"
    device: str = "auto"
    attention: Literal["sdpa", "eager", "flash_attention_2"] = "sdpa"
    gradient_checkpointing: bool = False


def load_model(
    folder: Path, settings: ModelSettings
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Model and tokenizer of ``folder``, with a padding token and ready for adapters.

    Raises:
        SettingsError: If there is no model or no tokenizer, or the device is not there.
    """
    if not (folder / "config.json").is_file():
        raise SettingsError(
            f"model.path {str(folder)!r} is no folder with a model (no config.json in it): give "
            "the path of a snapshot of the hub, or of what `save_pretrained` wrote"
        )
    device = _device(settings)
    try:
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=getattr(torch, settings.dtype),
            attn_implementation=settings.attention,
            local_files_only=True,
        )
        tokenizer = cast(
            PreTrainedTokenizerFast, AutoTokenizer.from_pretrained(folder, local_files_only=True)
        )
        model.to(device)  # type: ignore[arg-type]  # its stub knows no devices
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise SettingsError(f"cannot load the model in {folder}: {error}") from error
    if device.type == "cuda" and settings.attention == "sdpa":
        # cuDNN's kernel makes a plan for every new shape, 16 ms on an H100: each token that is
        # sampled, and each micro-batch, has a shape of its own.
        torch.backends.cuda.enable_cudnn_sdp(False)
    if device.type == "cuda" and settings.dtype == "bfloat16":
        # Adapters stay in float32. Their products without tensor cores were more than half of an
        # update's; TF32 rounds to 10 bits, where the base model's own weights have 7.
        torch.set_float32_matmul_precision("high")
    if model.config.pad_token_id is None:
        # Published models often name it in the tokenizer only.
        own = tokenizer.pad_token_id
        model.config.pad_token_id = end_ids(model, tokenizer)[0] if own is None else own
    if settings.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.train(False), tokenizer


def end_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> tuple[int, ...]:
    """Tokens that end an output: the model's own list, which may be longer than the tokenizer's.

    Raises:
        SettingsError: If nothing names one.
    """
    generation = getattr(model, "generation_config", None)
    for value in (
        getattr(generation, "eos_token_id", None),
        model.config.eos_token_id,
        tokenizer.eos_token_id,
    ):
        if isinstance(value, int):
            return (value,)
        if isinstance(value, Sequence) and value:
            return tuple(int(token) for token in value)
    raise SettingsError(
        f"{model.config._name_or_path}: neither generation_config.json, config.json nor the "
        "tokenizer names a token that ends an output (eos_token_id)"
    )


def _device(settings: ModelSettings) -> torch.device:
    if settings.device == "auto":
        return torch.device("cuda" if settings.path and torch.cuda.is_available() else "cpu")
    try:
        return torch.device(settings.device)
    except RuntimeError as error:
        raise SettingsError(f"model.device {settings.device!r} is no device: {error}") from error
