"""Gradients read between ordered micro-batches equal separate backward passes."""

from __future__ import annotations

import pytest
import torch
from gradient_models import (
    GROUPS,
    VOTING,
    checkpointing,
    flat,
    gram,
    loss_of,
    reference,
    rows,
    separate,
    tiny_model,
    trained,
)
from torch import nn
from transformers import Qwen3ForCausalLM

from roledrift.capture.role_ordered import RoleOrderedGradients
from roledrift.errors import AttachError, CaptureError, ConfigError
from roledrift.gram import matrix
from roledrift.protocols import GradientSource
from roledrift.records import GramRecord

PLACES = [("generator", 0), ("generator", 1), ("generator", 2), ("aggregator", 0)]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def step(ordered: RoleOrderedGradients, model: nn.Module, scale: float = 1.0) -> list[GramRecord]:
    ids, weight_B = rows()
    for group, (role, slot) in enumerate(PLACES):
        for row in (group == GROUPS).nonzero()[:, 0]:
            (loss_of(model, ids[row, None], weight_B[row, None]) * scale).backward()
        ordered.mark(role, slot)
    model.zero_grad()
    return list(ordered.drain_gradients())


@pytest.mark.parametrize("mode", ["none", "nonreentrant", "reentrant"])
@pytest.mark.parametrize("store", ["fold", "full"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_equals_separate_backwards(dtype: torch.dtype, store: str, mode: str) -> None:
    model = tiny_model(dtype)
    checkpointing(model, mode)
    ordered = RoleOrderedGradients(VOTING, every=1, store=store)
    ordered.attach(model)
    expected = gram(reference(dtype)).numpy()
    for _ in range(2):
        (record,) = step(ordered, model)
        lengths = expected.diagonal() ** 0.5
        off = abs(matrix(record) - expected) / lengths[:, None] / lengths[None]
        assert off.max() < (1e-10 if dtype == torch.float64 else 1e-5)
        assert record.method == "boundary"
        assert (record.relative_error > 0) == (store == "fold")


def test_covers_full_fine_tuning_with_embeddings() -> None:
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(tiny_model().config).double()
    ordered = RoleOrderedGradients(VOTING, every=1, store="full")
    ordered.attach(model)
    ids, weight_B = rows()
    everything = list(model.parameters())
    gradients = []
    for group in range(4):
        model.zero_grad()
        loss_of(model, ids, weight_B * (group == GROUPS)).backward()
        gradients.append(flat(everything))
    model.zero_grad()
    (record,) = step(ordered, model)
    torch.testing.assert_close(torch.tensor(matrix(record)), gram(gradients))


def test_two_policies_and_only_own_groups() -> None:
    from peft import LoraConfig

    model = tiny_model(torch.float64)
    model.add_adapter("critic", LoraConfig(r=2, target_modules=["q_proj"]))
    model.double()
    workflow = VOTING.routed({"generator": "default", "aggregator": "critic"})
    ordered = RoleOrderedGradients(workflow, every=1)
    ordered.attach(model)
    ids, weight_B = rows()
    for adapter, role in (("default", "generator"), ("critic", "aggregator")):
        model.set_adapter(adapter)
        loss_of(model, ids, weight_B).backward()
        ordered.mark(role)
    critic, default = ordered.drain_gradients()
    assert (critic.policy, critic.labels) == ("critic", ("aggregator",))
    assert (default.policy, default.labels) == ("default", ("generator/0",))
    for record, adapter in ((critic, "critic"), (default, "default")):
        total = flat([p for p in trained(model, adapter) if p.grad is not None])
        assert matrix(record)[0, 0] == pytest.approx(float(total @ total), rel=1e-10)


def test_scaler_schedule_and_misuse() -> None:
    model = tiny_model()
    ordered = RoleOrderedGradients(VOTING, every=2)
    assert isinstance(ordered, GradientSource)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    ordered.attach(model, scaler=scaler)
    (record,) = step(ordered, model, scale=2.0**10)
    expected = gram(separate(model, *rows(), GROUPS)).numpy()
    assert matrix(record).diagonal() == pytest.approx(expected.diagonal(), rel=1e-4)
    assert step(ordered, model) == []
    assert step(ordered, model, scale=torch.inf) == []
    assert list(ordered.faults()) == ["role gradients: overflow, the scaler skips this step"]
    step(ordered, model)
    with pytest.raises(ConfigError, match="aggregator"):
        ordered.mark("agregator")
    with pytest.raises(CaptureError, match="slots 0 to 2"):
        ordered.mark("generator", 3)
    with pytest.raises(AttachError, match="no trainable parameter"):
        RoleOrderedGradients(VOTING).attach(nn.Linear(2, 2).requires_grad_(False))
    with pytest.raises(ValueError, match="store='half'"):
        RoleOrderedGradients(VOTING, store="half")
