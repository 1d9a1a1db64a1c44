"""Gradients that pass the taps by: the record counts them, names the layer or is refused.

Each case gave a record that was wrong without a fault, "100.0 % of trainable numbers", before
closures were checked.
"""

from __future__ import annotations

from types import MethodType

import pytest
import torch
from gradient_models import (
    ROLES,
    SLOTS,
    VOTING,
    checkpointing,
    flat,
    fused_mlp,
    gram,
    loss_of,
    move_off_zero,
    rows,
    step,
    tiny_model,
    trained,
)
from peft import LoraConfig, MontecloraConfig, VeloraConfig
from torch import nn
from transformers import Qwen3ForCausalLM

from roledrift.capture.gradients import RoleGradientProbe
from roledrift.gram import total_norm
from roledrift.records import GramRecord


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def probed(model: nn.Module, store: str = "fold") -> RoleGradientProbe:
    probe = RoleGradientProbe(VOTING, every=1, store=store)
    probe.attach(model)
    return probe


def norm_of_grad(model: nn.Module) -> float:
    return float(flat([one for one in model.parameters() if one.requires_grad]).norm())


@pytest.mark.parametrize("mode", ["none", "nonreentrant", "reentrant"])
@pytest.mark.parametrize("store", ["fold", "full", "sketch"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_a_plain_lora_model_adds_up(dtype: torch.dtype, store: str, mode: str) -> None:
    model = tiny_model(dtype)
    checkpointing(model, mode)
    record = step(probed(model, store), model, 2)
    assert record.closure < (0.01 if dtype == torch.bfloat16 else 1e-6)
    assert record.covered == 1
    assert record.bypassed == ()


@pytest.mark.parametrize("config", [{"velora_config": VeloraConfig()}, {"use_dora": True}])
@pytest.mark.parametrize("parts", [1, 8])
def test_coverage_is_a_share_of_the_norm(config: dict[str, object], parts: int) -> None:
    model = tiny_model(torch.float64, **config)
    record = step(probed(model, "full"), model, parts)
    assert record.closure < 1e-6
    assert record.covered == pytest.approx(total_norm(record) / norm_of_grad(model), rel=0.03)


@pytest.mark.parametrize(
    "config",
    [{"velora_config": VeloraConfig()}, {"monteclora_config": MontecloraConfig()}],
    ids=["velora", "monteclora"],
)
def test_variants_that_read_the_weight_of_lora_a(config: dict[str, object]) -> None:
    model = tiny_model(**config)
    record = step(probed(model), model, 2)
    assert record.covered < 0.9
    assert len(record.bypassed) == 14
    assert all(".lora_A." in name for name in record.bypassed)


def test_a_fused_mlp_is_named() -> None:
    model = tiny_model(torch.float64)
    for layer in model.base_model.model.model.layers:
        layer.mlp.forward = MethodType(fused_mlp, layer.mlp)
    record = step(probed(model), model, 2)
    assert record.covered < 0.99
    assert len(record.bypassed) == 12
    assert all(".mlp." in name for name in record.bypassed)
    attention = [p for name, p in model.named_parameters() if ".self_attn." in name]
    seen = float(flat([one for one in attention if one.requires_grad]).norm())
    assert total_norm(record) == pytest.approx(seen, rel=1e-3)


def test_tied_embeddings_are_not_covered() -> None:
    config = tiny_model(hidden=64).config
    covered = {}
    for tied in (False, True):
        config.tie_word_embeddings = tied
        torch.manual_seed(0)
        model = Qwen3ForCausalLM(config).train()
        probe = RoleGradientProbe(VOTING, every=1, store="sketch")
        uncovered = probe.attach(model).uncovered
        assert any("several modules share" in why for why in uncovered) == tied
        record = step(probe, model, 2)
        assert record.closure < 1e-5
        covered[tied] = record.covered
        whole = float(flat(list(model.parameters())).norm())
        assert total_norm(record) == pytest.approx(record.covered * whole, rel=0.2)
    assert covered[True] < covered[False] < 0.95


def test_a_weight_that_is_also_used_past_its_layer_is_refused() -> None:
    model = tiny_model(torch.float64)
    probe = probed(model)
    ids, weight_B = rows()
    with probe.groups(ROLES, SLOTS):
        loss = loss_of(model, ids, weight_B)
    (loss + 0.1 * sum(one.square().sum() for one in trained(model))).backward()
    assert probe.drain_gradients() == []
    assert probe.faults() == {
        "role gradients of shared refused: the parts do not add up to .grad": 1
    }


def test_a_micro_batch_without_labels_is_refused() -> None:
    model = tiny_model(torch.float64)
    probe = probed(model)
    ids, weight_B = rows()
    with probe.groups(ROLES[:4], SLOTS[:4]):
        loss_of(model, ids[:4], weight_B[:4]).backward()
    loss_of(model, ids[4:], weight_B[4:]).backward()
    assert probe.drain_gradients() == []
    faults = probe.faults()
    assert faults.pop("forward with gradients outside of groups()") == 1
    assert all("do not add up" in one for one in faults)
    assert len(faults) == 1
    with torch.no_grad():
        loss_of(model, ids, weight_B)
    loss_of(model, ids, weight_B)  # a forward that nobody goes back through
    assert isinstance(step(probe, model, 2), GramRecord)


def test_less_than_half_of_the_norm_is_no_record() -> None:
    model = tiny_model(target_modules=["q_proj", "embed_tokens"])
    probe = probed(model)
    with probe.groups(ROLES, SLOTS):
        loss_of(model, *rows()).backward()
    assert probe.drain_gradients() == []
    (fault,) = probe.faults()
    assert "less than half of the gradient's norm" in fault


def test_somebody_elses_scaling_of_a_layer_is_refused() -> None:
    model = tiny_model(torch.float64)
    layer = model.base_model.model.model.layers[0].mlp.up_proj.lora_B["default"]
    own = layer.forward
    layer.forward = lambda x: 2 * own(x)
    expected = loss_of(model, *rows())
    probe = probed(model)
    with probe.groups(ROLES, SLOTS):
        loss = loss_of(model, *rows())
        loss.backward()
    assert torch.equal(loss, expected)
    assert probe.drain_gradients() == []
    (fault,) = probe.faults()
    assert "do not add up" in fault


def test_clipping_and_two_backwards_change_nothing() -> None:
    model = tiny_model(torch.float64)
    probe = probed(model, "full")
    ids, weight_B = rows()
    with probe.groups(ROLES, SLOTS):
        loss = loss_of(model, ids, weight_B)
    loss.backward(retain_graph=True)
    loss.backward()
    norm = norm_of_grad(model)
    torch.nn.utils.clip_grad_norm_(trained(model), 1e-3)
    model.zero_grad()
    (record,) = probe.drain_gradients()
    assert record.closure < 1e-7
    assert total_norm(record) == pytest.approx(norm)


def test_two_policies_have_a_closure_each() -> None:
    model = tiny_model(torch.float64)
    model.add_adapter("evaluator", LoraConfig(r=3, target_modules=["q_proj"], bias="all"))
    model.double()
    move_off_zero(model)
    model.base_model.set_adapter(["default", "evaluator"])
    probe = RoleGradientProbe(VOTING, every=1, store="full")
    probe.attach(model)
    with probe.groups(ROLES, SLOTS):
        loss_of(model, *rows()).backward()
    records = probe.drain_gradients()
    assert [one.policy for one in records] == ["default", "evaluator"]
    for record in records:
        assert record.closure < 1e-7
        assert record.covered == pytest.approx(1)
        assert total_norm(record) == pytest.approx(
            float(gram([flat(trained(model, record.policy))]).sqrt())
        )
