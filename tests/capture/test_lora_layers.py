"""What is found in a model, whose it is, and why the rest is not."""

from __future__ import annotations

import pytest
import torch
from gradient_models import ALL_LINEAR, VOTING, tiny_model
from peft import LoraConfig, get_peft_model
from torch import nn

from roledrift.capture.gradients import RoleGradientProbe
from roledrift.capture.lora_layers import (
    find_parts,
    is_compiled,
    policies_of,
    trained_adapters,
)
from roledrift.errors import AttachError


def coverage_of(**lora: object):  # type: ignore[no-untyped-def]
    return RoleGradientProbe(VOTING).attach(tiny_model(**lora))


def test_all_of_a_plain_lora_model() -> None:
    coverage = coverage_of()
    assert coverage.uncovered == {}
    assert coverage.layers == 2 * 7 * 2
    assert coverage.policies == {"default": "shared"}
    assert "%" not in coverage.describe().replace("+-0.4% of a norm", ""), "numbers are counted not"


@pytest.mark.parametrize(
    ("lora", "why", "name"),
    [
        ({"target_modules": ["q_proj", "embed_tokens"]}, "embeddings", "lora_embedding_A"),
        ({"use_dora": True}, "the magnitude vector", "lora_magnitude_vector"),
        ({"target_modules": ["q_proj"], "lora_bias": True}, "biases", "lora_B.default.bias"),
        (
            {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
            "trained in full",
            "modules_to_save.default.weight",
        ),
        ({"target_modules": ["q_proj"], "trainable_token_indices": [1, 2]}, "not a", "delta"),
    ],
)
def test_reasons(lora: dict[str, object], why: str, name: str) -> None:
    coverage = coverage_of(**lora)
    (found,) = [its for reason, its in coverage.uncovered.items() if reason.startswith(why)]
    assert all(name in one or "lora_embedding_B" in one for one in found)
    assert f"not covered: {len(found)} ({why}" in coverage.describe()


def test_target_parameters() -> None:
    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 4))
            self.head = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(x @ self.weight)

    config = LoraConfig(r=2, target_modules=["head"], target_parameters=["block.weight"])
    model = get_peft_model(nn.ModuleDict({"block": Experts()}), config)
    coverage = RoleGradientProbe(VOTING).attach(model)
    (why,) = coverage.uncovered
    assert why.startswith("LoRA on target_parameters")
    assert coverage.layers == 2


def test_experts_are_left_out() -> None:
    model = nn.Module()
    model.experts = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    model.gate = nn.Linear(4, 2)
    tuned = get_peft_model(model, LoraConfig(r=2, target_modules=r"experts\.\d|gate"))
    coverage = RoleGradientProbe(VOTING).attach(tuned)
    assert coverage.layers == 2
    (why,) = coverage.uncovered
    assert why.startswith("a mixture of experts")


def test_whose_policy_an_adapter_is() -> None:
    shared = VOTING
    own = VOTING.routed("isolated")
    assert policies_of({"default": 4}, shared, None) == {"default": "shared"}
    assert policies_of({"default": 4, "ref": 0}, shared, None) == {"default": "shared"}
    assert policies_of({"generator": 4, "aggregator": 0}, own, None) == {
        "aggregator": "aggregator",
        "generator": "generator",
    }
    assert policies_of({"a": 4, "b": 0}, own, {"a": "generator", "b": "aggregator"}) == {
        "a": "generator",
        "b": "aggregator",
    }
    assert policies_of({"": 3}, own, None) == {"": "model"}
    with pytest.raises(AttachError, match=r"\['c'\]"):
        policies_of({"a": 4}, own, {"c": "generator"})


def test_frozen_reference_adapter_is_left_out() -> None:
    model = tiny_model()
    model.add_adapter("ref", LoraConfig(r=4, target_modules=ALL_LINEAR))
    parts = find_parts(model, plain=False)
    assert trained_adapters(parts) == {"default": 28, "ref": 0}
    assert RoleGradientProbe(VOTING).attach(model).policies == {"default": "shared"}


def test_copies_that_are_trained_in_full_belong_to_their_adapter() -> None:
    model = tiny_model(target_modules=["q_proj"], modules_to_save=["lm_head"])
    parts = find_parts(model, plain=True)
    assert {part.adapter for part in parts} == {"default"}
    assert any("modules_to_save" in part.name for part in parts)


def test_compiled_models_are_known() -> None:
    plain, whole, part = (nn.Sequential(nn.Linear(2, 2)) for _ in range(3))
    part[0].compile()
    assert not is_compiled(plain)
    assert is_compiled(torch.compile(whole))
    assert is_compiled(part)


def test_layers_that_fsdp1_wraps_alone_are_found() -> None:
    """It wraps what is trained apart from what is frozen, and trains a flat parameter for it."""

    class Wrapped(nn.Module):
        def __init__(self, layer: nn.Linear) -> None:
            super().__init__()
            self._fsdp_wrapped_module = layer

    model = tiny_model()
    plain = find_parts(model, plain=False)
    for module in model.modules():
        for side in ("lora_A", "lora_B"):
            for name, layer in list(getattr(module, side, {}).items()):
                getattr(module, side)[name] = Wrapped(layer)
    found = find_parts(model, plain=False)
    assert [one.module for one in found] == [one.module for one in plain]
    flat = nn.Parameter(torch.zeros(3))
    assert found[0].trained is found[0].module.weight
    found[0].module._flat_param = flat
    assert found[0].trained is flat
