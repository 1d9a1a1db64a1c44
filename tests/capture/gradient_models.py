"""Tiny LoRA models, micro-batches and losses for role gradient tests, and the slow reference."""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from transformers import Qwen3Config, Qwen3ForCausalLM

from roledrift.capture.gradients import RoleGradientProbe
from roledrift.gram import matrix
from roledrift.records import GramRecord
from roledrift.workflow import Role, Workflow

VOCAB = 61
ALL_LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
VOTING = Workflow("voting", (Role("generator", slots=3), Role("aggregator")), ("shared",) * 2)
# Roles and slots of 8 rows in no particular order; the last row's role is met only once.
ROLES = torch.tensor([0, 0, 1, 0, 1, 0, 0, 1])
SLOTS = torch.tensor([0, 1, 0, 2, 0, 0, 1, 0])
GROUPS = torch.tensor([0, 1, 3, 2, 3, 0, 1, 3])


def tiny_model(
    dtype: torch.dtype = torch.float32, *, hidden: int = 32, layers: int = 2, **lora: object
) -> nn.Module:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCAB,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=hidden // 2,
        max_position_embeddings=128,
        attn_implementation="sdpa",
    )
    config.use_cache = False
    settings = {"r": 4, "lora_alpha": 8, "target_modules": ALL_LINEAR, **lora}
    model = get_peft_model(
        Qwen3ForCausalLM(config).to(dtype), LoraConfig(**settings), autocast_adapter_dtype=False
    )
    move_off_zero(model)
    return model.train()


def move_off_zero(model: nn.Module) -> None:
    """lora_B starts at zero, which would make every gradient of lora_A zero."""
    source = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                noise = torch.randn(parameter.shape, generator=source, dtype=torch.float32)
                parameter.add_(noise.to(parameter.dtype) * 0.1)


def fused(layer: nn.Module, x: Tensor) -> Tensor:
    """``lora_B(lora_A(x))`` from the weights alone, as fused kernels compute it."""
    a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    return layer.base_layer(x) + layer.scaling["default"] * (x @ a.t() @ b.t())


def fused_mlp(mlp: nn.Module, x: Tensor) -> Tensor:
    """The forward of an MLP that calls none of its LoRA layers."""
    return fused(mlp.down_proj, F.silu(fused(mlp.gate_proj, x)) * fused(mlp.up_proj, x))


def checkpointing(model: nn.Module, mode: str) -> None:
    if mode == "none":
        return
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable({"use_reentrant": mode == "reentrant"})


def rows(n: int = 8, length: int = 12, seed: int = 2) -> tuple[Tensor, Tensor]:
    """Token ids and one weight (an advantage) per row."""
    source = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, VOCAB, (n, length), generator=source)
    return ids, torch.randn(n, generator=source)


def loss_of(model: nn.Module, ids: Tensor, weight_B: Tensor) -> Tensor:
    """Policy-gradient loss, normalised by the 8 rows of the whole step."""
    logits = model(input_ids=ids).logits[:, :-1]
    logits = logits if logits.dtype == torch.float64 else logits.float()
    logp = torch.log_softmax(logits, -1).gather(-1, ids[:, 1:, None])[..., 0]
    return -(logp.sum(1) * weight_B.to(logp.dtype)).sum() / (8 * (ids.shape[1] - 1))


def trained(model: nn.Module, adapter: str = "default") -> list[nn.Parameter]:
    return [p for name, p in model.named_parameters() if "lora_" in name and f".{adapter}." in name]


def separate(model: nn.Module, ids: Tensor, weight_B: Tensor, groups: Tensor) -> list[Tensor]:
    """The slow reference: one backward per group with the other rows' weights at zero."""
    gradients = []
    for group in groups.unique().tolist():
        model.zero_grad()
        torch.manual_seed(3)
        loss_of(model, ids, weight_B * (groups == group)).backward()
        gradients.append(flat(trained(model)))
    model.zero_grad()
    return gradients


def flat(parameters: list[nn.Parameter]) -> Tensor:
    return torch.cat([p.grad.double().flatten() for p in parameters if p.grad is not None])


def gram(gradients: list[Tensor]) -> Tensor:
    stacked = torch.stack(gradients)
    return stacked @ stacked.t()


@lru_cache
def reference(dtype: torch.dtype, dropout: float = 0.0) -> list[Tensor]:
    model = tiny_model(dtype, lora_dropout=dropout)
    return separate(model, *rows(), GROUPS)


def step(probe: RoleGradientProbe, model: nn.Module, parts: int) -> GramRecord:
    ids, weight_B = rows()
    size = 8 // parts
    torch.manual_seed(3)
    for i in range(0, 8, size):
        part = slice(i, i + size)
        with probe.groups(ROLES[part], SLOTS[part]):
            loss_of(model, ids[part], weight_B[part]).backward()
    (record,) = probe.drain_gradients()
    return record


def differ(record: GramRecord, gradients: list[Tensor]) -> float:
    """Largest difference of inner products, relative to the norms they belong to."""
    expected = gram(gradients).numpy()
    lengths = expected.diagonal() ** 0.5
    return float((abs(matrix(record) - expected) / lengths[:, None] / lengths[None]).max())
