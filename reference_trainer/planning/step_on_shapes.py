"""One micro-batch of an update on tensors without storage: its peak of memory and its arithmetic.

The model is the real class with real PEFT layers on torch's ``meta`` device, cut to one and to two
layers. What is live at the peak and what is computed are linear in the layers, in the tokens and
in the pairs of tokens of a sequence, so a few runs give any number of them. Nothing here knows how
an architecture is built.
"""

from __future__ import annotations

import copy
import json
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry
from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM, PretrainedConfig
from transformers.models.qwen3.modeling_qwen3 import repeat_kv

from reference_trainer.policies import AdamSettings, AdapterBank, LoraSettings
from reference_trainer.scoring import MOST_LOGITS, token_scores

_ATTENTION = "shapes"

_LAYERS = (1, 2)
"""Layers of the cut models."""

_LONGEST = 4096
"""Tokens of the sequences that longer ones are extrapolated from."""

_CAUSAL = ("flash", "efficient")
"""Kernels that skip the half of all pairs that a causal model never looks at."""


@dataclass(frozen=True, slots=True)
class MicroShape:
    """Sizes of one forward.

    Attributes:
        sequences: Sequences; packed rows are one.
        tokens: Of a sequence, outputs included.
        outputs: Tokens with a log-probability, of all sequences.
        masked: Rows are kept apart by a mask over all pairs of tokens.
        gradients: False for a forward without a backward.
    """

    sequences: int
    tokens: int
    outputs: int
    masked: bool = False
    gradients: bool = True


@dataclass(frozen=True, slots=True)
class StepCost:
    """Bytes that live on top of weights and gradients, and floating-point operations.

    Attributes:
        stored: Bytes after the forward of the decoder: what its backward needs.
        head: Most bytes on top of that while logits are computed and differentiated.
        layer: Most bytes on top of that while the decoder is differentiated; in a forward without
            gradients, the most at any time.
        forward: Operations of the forward.
        backward: Of the backward, what is computed again included.
    """

    stored: int
    head: int
    layer: int
    forward: int
    backward: int

    @property
    def peak(self) -> int:
        """Most bytes at any time."""
        return self.stored + max(self.head, self.layer)


@dataclass(frozen=True, slots=True)
class Trained:
    """What does not change between micro-batches.

    Attributes:
        config: JSON of the model's configuration.
        dtype: Of the frozen weights.
        rank: Of the adapter.
        attention: As in the settings of the model.
        checkpointing: Whether activations are computed again.
    """

    config: str
    dtype: str
    rank: int
    attention: str
    checkpointing: bool


def step_cost(trained: Trained, shape: MicroShape) -> StepCost:
    """Cost of one micro-batch of the whole model."""
    size = min(_LONGEST, 1 << (shape.tokens.bit_length() - 1))
    parts = _decoder(trained, size, shape.masked, shape.gradients)
    count, pairs = shape.sequences * shape.tokens, shape.sequences * shape.tokens**2
    stored, layer, forward, backward = (part.of(count, pairs) for part in parts)
    head, ahead, back = _head(trained, shape.outputs, shape.gradients)
    return StepCost(stored, head, layer, forward + ahead, backward + back)


def operations(trained: Trained, tokens: float, outputs: float) -> tuple[float, float]:
    """Floating-point operations of one row's forward and backward, what is computed again included.

    Args:
        trained: The model.
        tokens: Of the row, outputs included.
        outputs: Those with a log-probability.
    """
    forward, backward = _decoder(trained, _LONGEST, False, True)[2:]
    _, ahead, back = _head(trained, 64, True)
    share = outputs / 64
    return (
        forward.of(tokens, tokens**2) + share * ahead,
        backward.of(tokens, tokens**2) + share * back,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """A number that is linear in the tokens and in the pairs of tokens of a sequence."""

    constant: float
    token: float
    pair: float

    def of(self, tokens: float, pairs: float) -> int:
        return max(0, round(self.constant + self.token * tokens + self.pair * pairs))


@lru_cache(maxsize=256)
def _decoder(
    trained: Trained, size: int, masked: bool, gradients: bool
) -> tuple[_Part, _Part, _Part, _Part]:
    """Of the whole decoder: bytes stored, bytes of one layer, operations forward and backward.

    From a sequence of ``size`` tokens, one of twice as many, and where a mask or scores over all
    pairs of tokens are stored, two sequences.
    """
    layers = int(_configured(trained.config).num_hidden_layers)

    def all_layers(sequences: int, tokens: int) -> list[int]:
        few, more = (
            _decoded(bank_on_shapes(trained, count), sequences, tokens, masked, gradients)
            for count in _LAYERS
        )
        return [
            low + (layers - _LAYERS[0]) * (high - low) for low, high in zip(few, more, strict=True)
        ]

    short, long = all_layers(1, size), all_layers(1, 2 * size)
    if masked or trained.attention == "eager":
        two = all_layers(2, size)
        stored, layer = (
            _through(*values, size) for values in list(zip(short, two, long, strict=True))[:2]
        )
    else:
        stored, layer = (
            _Part(2 * low - high, (high - low) / size, 0.0)
            for low, high in zip(short[:2], long[:2], strict=True)
        )
    forward, backward = (  # without tokens there is nothing to compute
        _Part(0.0, (4 * low - high) / (2 * size), (high - 2 * low) / (2 * size**2))
        for low, high in zip(short[2:], long[2:], strict=True)
    )
    return stored, layer, forward, backward


def _through(short: int, two: int, long: int, size: int) -> _Part:
    """Through a sequence of ``size`` tokens, two of them, and one of twice as many."""
    pair = (long - two) / (2 * size**2)
    token = (two - short - pair * size**2) / size
    return _Part(short - token * size - pair * size**2, token, pair)


def _configured(text: str) -> PretrainedConfig:
    values = json.loads(text)
    return AutoConfig.for_model(values.pop("model_type"), **values)


class Meter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations, and bytes of tensors that were made inside it and still live.

    Args:
        known: Tensors that were there before: views of them count for nothing.
    """

    def __init__(self, known: Iterable[Tensor] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = self.most = self.operations = 0
        self._known = list(known)
        self._sizes = {tensor.untyped_storage()._cdata: 0 for tensor in self._known}

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self._meet(leaf)
        if formula := flop_registry.get(func._overloadpacket):
            half = any(word in func.__name__ for word in _CAUSAL)
            given = _grouped(args) if half else args
            count = formula(*given, **(kwargs or {}), out_val=result)
            self.operations += count // 2 if half else count
        return result

    def window(self) -> int:
        """Most bytes since the last call."""
        most, self.most = self.most, self.live
        return most

    def _meet(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._sizes:
            self._sizes[key] = storage.nbytes()
            self.live += storage.nbytes()
            self.most = max(self.most, self.live)
            weakref.finalize(storage, self._end, key)

    def _end(self, key: int) -> None:
        self.live -= self._sizes.pop(key)


def _grouped(args: Sequence[Any]) -> list[Any]:
    """Keys and values with as many heads as queries have: formulas of torch < 2.13 insist on it."""
    fours = [
        argument.shape for argument in args if isinstance(argument, Tensor) and argument.dim() == 4
    ]
    heads = max((shape[1] for shape in fours), default=0)
    return [
        argument.new_empty(argument.shape[0], heads, *argument.shape[2:])
        if isinstance(argument, Tensor) and argument.dim() == 4 and argument.shape[1] != heads
        else argument
        for argument in args
    ]


def _decoded(
    bank: AdapterBank, sequences: int, tokens: int, masked: bool, gradients: bool
) -> tuple[int, int, int, int]:
    model: Any = bank.causal_lm
    with torch.device("meta"):
        ids = torch.zeros(sequences, tokens, dtype=torch.long)
        mask = None
        if masked or model.config._attn_implementation == "eager":
            mask = torch.zeros(1, 1, tokens, tokens, dtype=torch.bool)
            if model.config._attn_implementation == "eager":
                mask = mask.to(model.dtype)
        for parameter in bank.parameters_of("policy"):  # as if there had been another micro-batch
            parameter.grad = torch.zeros_like(parameter)
    # Ready masks: models with several kinds of attention take one of each.
    kinds = getattr(model.config, "layer_types", None)
    ready = dict.fromkeys(kinds, mask) if kinds else mask
    with (
        bank.mode(training=gradients),
        torch.set_grad_enabled(gradients),
        Meter(held(bank)) as meter,
    ):
        hidden = model.model(input_ids=ids, attention_mask=ready, use_cache=False)[0]
        stored, most, forward = meter.live, meter.window(), meter.operations
        if not gradients:
            return 0, most, forward, 0
        torch.autograd.backward(hidden, torch.empty_like(hidden))
        layer = meter.window()
    return stored, layer - stored, forward, meter.operations - forward


def _head(trained: Trained, outputs: int, gradients: bool) -> tuple[int, int, int]:
    """Of the output layer: most bytes, operations forward and backward.

    Many outputs are scored chunk by chunk: each chunk adds the same.
    """
    chunk = max(1, MOST_LOGITS // int(_configured(trained.config).get_text_config().vocab_size))
    if outputs <= 4 * chunk:
        return _scored(trained, outputs, gradients)
    few, more = (_scored(trained, count * chunk, gradients) for count in (2, 4))
    share = (outputs - 2 * chunk) / (2 * chunk)
    most, forward, backward = (
        low + round(share * (high - low)) for low, high in zip(few, more, strict=True)
    )
    return most, forward, backward


@lru_cache(maxsize=1024)
def _scored(trained: Trained, outputs: int, gradients: bool) -> tuple[int, int, int]:
    bank = bank_on_shapes(trained, 1)
    model: Any = bank.causal_lm
    with torch.device("meta"):
        width = model.get_output_embeddings().weight.shape[1]
        targets = torch.zeros(outputs, dtype=torch.long)
    with torch.set_grad_enabled(gradients), Meter(held(bank)) as meter:
        hidden = torch.empty(outputs, width, dtype=model.dtype, device="meta")
        logps, entropies = token_scores(
            model, hidden.requires_grad_(gradients), targets, temperature=1.0
        )
        forward = meter.operations
        del entropies
        if gradients:
            torch.autograd.backward(logps.sum())
    return meter.most, forward, meter.operations - forward


def held(bank: AdapterBank) -> Iterable[Tensor]:
    """Parameters and gradients."""
    for parameter in bank.model.parameters():
        yield parameter
        if parameter.grad is not None:
            yield parameter.grad


@lru_cache(maxsize=8)
def bank_on_shapes(trained: Trained, layers: int) -> AdapterBank:
    """The model with so many layers and one adapter, of the policy ``policy``, without storage."""
    config = copy.deepcopy(_configured(trained.config))
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]
    config.pad_token_id = config.pad_token_id or 0
    AttentionInterface.register(_ATTENTION, _attention)
    own = "eager" if trained.attention == "eager" else _ATTENTION
    with torch.device("meta"):
        model = cast(Any, AutoModelForCausalLM).from_config(
            config, dtype=getattr(torch, trained.dtype), attn_implementation=own
        )
        if trained.checkpointing:
            model.gradient_checkpointing_enable(
                gradient_checkpointing_kwargs={"use_reentrant": False}
            )
        lora = LoraSettings(rank=trained.rank)
        return AdapterBank(model, ("policy",), lora=lora, adam=AdamSettings(), seed=0)


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The fused kernels of a GPU; on ``meta`` the dispatcher would choose the unfused one."""
    if mask is None:
        flash = torch.ops.aten._scaled_dot_product_flash_attention
        output = flash(query, key, value, 0.0, True, scale=scaling)[0]
    else:
        groups = module.num_key_value_groups
        key, value = repeat_kv(key, groups), repeat_kv(value, groups)
        bias = torch.zeros_like(mask, dtype=query.dtype).masked_fill(mask, float("-inf"))
        bias = bias.expand(*query.shape[:2], -1, -1)
        efficient = torch.ops.aten._scaled_dot_product_efficient_attention
        output = efficient(query, key, value, bias, True, 0.0, False, scale=scaling)[0]
    return output.transpose(1, 2).contiguous(), None
