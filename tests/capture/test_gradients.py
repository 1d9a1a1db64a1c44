"""Role gradients equal separate backward passes, and training does not notice."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from gradient_models import (
    GROUPS,
    ROLES,
    SLOTS,
    VOTING,
    checkpointing,
    differ,
    flat,
    gram,
    loss_of,
    move_off_zero,
    reference,
    rows,
    separate,
    step,
    tiny_model,
    trained,
)
from peft import LoraConfig
from torch import Tensor, nn
from transformers import Qwen3ForCausalLM

from roledrift.capture.gradients import RoleGradientProbe
from roledrift.errors import AttachError, CaptureError
from roledrift.gram import by_role, mass_shares, matrix

MODES = ["none", "nonreentrant", "reentrant"]
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 4e-3}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


# 8 parts: every micro-batch holds one group. The stores take turns: each meets every other setting.
@pytest.mark.parametrize(
    ("dtype", "mode", "parts", "store"),
    [
        (dtype, mode, parts, ("fold", "full")[number % 2])
        for number, (dtype, mode, parts) in enumerate(product(TOLERANCE, MODES, (1, 2, 8)))
    ],
    ids=str,
)
def test_equals_separate_backwards(dtype: torch.dtype, mode: str, parts: int, store: str) -> None:
    model = tiny_model(dtype)
    checkpointing(model, mode)
    probe = RoleGradientProbe(VOTING, every=1, store=store)
    probe.attach(model)
    record = step(probe, model, parts)
    assert record.labels == ("generator/0", "generator/1", "generator/2", "aggregator")
    # The tiny policy has fewer entries than a fold has places, so folding is exact here.
    assert differ(record, reference(dtype)) < TOLERANCE[dtype]
    assert probe.faults() == {}


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_every_entry_and_the_sum(dtype: torch.dtype) -> None:
    model = tiny_model(dtype)
    probe = RoleGradientProbe(VOTING, every=1, store="full")
    probe.attach(model)
    ids, weight_B = rows()
    with probe.groups(ROLES, SLOTS):
        loss_of(model, ids, weight_B).backward()
    store = probe._ledgers[0].store
    got = [torch.cat([one[g].double().flatten() for one in store.tensors()]) for g in range(4)]
    for mine, its in zip(got, reference(dtype), strict=True):
        assert (mine - its).norm() / its.norm() < 2 * TOLERANCE[dtype]
    total = flat(trained(model))
    assert (sum(got) - total).norm() / total.norm() < 2 * TOLERANCE[dtype]


@pytest.mark.parametrize("mode", MODES)
def test_dropout_with_the_same_seed(mode: str) -> None:
    model = tiny_model(torch.float64, lora_dropout=0.1)
    checkpointing(model, mode)
    probe = RoleGradientProbe(VOTING, every=1, store="full")
    probe.attach(model)
    assert differ(step(probe, model, 1), reference(torch.float64, 0.1)) < 1e-10


@pytest.mark.parametrize("mode", MODES)
def test_autocast(mode: str) -> None:
    model = tiny_model()
    checkpointing(model, mode)
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model)
    with torch.autocast("cpu", torch.bfloat16):
        gradients = separate(model, *rows(), GROUPS)
        record = step(probe, model, 2)
    assert differ(record, gradients) < 4e-3


def test_the_scale_of_a_scaler_is_taken_out() -> None:
    model = tiny_model()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    optimizer = torch.optim.SGD(trained(model), lr=0.0)
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model, scaler=scaler)
    ids, weight_B = rows()
    for _ in range(2):
        with probe.groups(ROLES, SLOTS):
            scaler.scale(loss_of(model, ids, weight_B)).backward()
        scaler.step(optimizer)
        scaler.update(2.0**12)
        optimizer.zero_grad()
        (record,) = probe.drain_gradients()
        assert differ(record, reference(torch.float32)) < 1e-5
    with probe.groups(ROLES, SLOTS):
        (scaler.scale(loss_of(model, ids, weight_B)) * torch.inf).backward()
    assert probe.drain_gradients() == []
    assert list(probe.faults()) == ["role gradients: overflow, the scaler skips this step"]


@pytest.mark.parametrize("mode", MODES)
def test_two_forwards_before_two_backwards(mode: str) -> None:
    model = tiny_model(torch.float64)
    checkpointing(model, mode)
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model)
    ids, weight_B = rows()
    losses = []
    for part in (slice(0, 4), slice(4, 8)):
        with probe.groups(ROLES[part], SLOTS[part]):
            losses.append(loss_of(model, ids[part], weight_B[part]))
    for loss in losses:
        loss.backward()
    (record,) = probe.drain_gradients()
    assert differ(record, reference(torch.float64)) < 1e-10


def test_checkpointing_recomputes() -> None:
    """The modes above are what they are called."""
    calls = {}
    for mode in MODES:
        model = tiny_model()
        checkpointing(model, mode)
        calls[mode] = 0

        def count(*_: object, mode: str = mode) -> None:
            calls[mode] += 1

        layer = model.get_submodule("base_model.model.model.layers.0.mlp")
        layer.register_forward_pre_hook(count)
        loss_of(model, *rows()).backward()
    assert calls == {"none": 1, "nonreentrant": 2, "reentrant": 2}


def add_evaluator(model: nn.Module) -> None:
    torch.manual_seed(5)
    model.add_adapter("evaluator", LoraConfig(r=3, target_modules=["q_proj", "down_proj"]))
    model.double()
    move_off_zero(model)


def test_two_adapters_active_at_once() -> None:
    model = tiny_model(torch.float64)
    add_evaluator(model)
    model.base_model.set_adapter(["default", "evaluator"])
    ids, weight_B = rows()
    expected: dict[str, list[Tensor]] = {"default": [], "evaluator": []}
    for group in range(4):
        model.zero_grad()
        loss_of(model, ids, weight_B * (group == GROUPS)).backward()
        for name, its in expected.items():
            its.append(flat(trained(model, name)))
    probe = RoleGradientProbe(VOTING, every=1, store="full")
    coverage = probe.attach(model)
    assert coverage.policies == {"default": "default", "evaluator": "evaluator"}
    with probe.groups(ROLES, SLOTS):
        loss_of(model, ids, weight_B).backward()
    records = probe.drain_gradients()
    assert [record.policy for record in records] == ["default", "evaluator"]
    for record in records:
        assert differ(record, expected[record.policy]) < 1e-10


@pytest.mark.parametrize("mode", MODES)
def test_isolated_adapters_take_turns(mode: str) -> None:
    model = tiny_model(torch.float64)
    add_evaluator(model)
    checkpointing(model, mode)
    workflow = VOTING.routed({"generator": "solver", "aggregator": "evaluator"})
    probe = RoleGradientProbe(workflow, every=1)
    coverage = probe.attach(model, adapters={"default": "solver", "evaluator": "evaluator"})
    assert coverage.buffer_bytes + 8 * 32_749 <= 2 * (1 << 20)
    ids, weight_B = rows()
    expected = {}
    for role, adapter in enumerate(("default", "evaluator")):
        model.set_adapter(adapter)
        mine = role == ROLES
        expected[adapter] = separate_for(model, adapter, ids, weight_B, GROUPS * mine - ~mine * 1)
        with probe.groups(ROLES[mine], SLOTS[mine]):
            loss_of(model, ids[mine], weight_B[mine]).backward()
        probe.faults()
    solver, evaluator = probe.drain_gradients()
    assert (solver.policy, evaluator.policy) == ("solver", "evaluator")
    assert evaluator.labels == ("aggregator",)
    assert differ(solver, expected["default"]) < 1e-10
    assert differ(evaluator, expected["evaluator"]) < 1e-10


def separate_for(
    model: nn.Module, adapter: str, ids: Tensor, weight_B: Tensor, groups: Tensor
) -> list[Tensor]:
    found = []
    for group in [one for one in groups.unique().tolist() if one >= 0]:
        model.zero_grad()
        loss_of(model, ids, weight_B * (groups == group)).backward()
        found.append(flat(trained(model, adapter)))
    return found


def packed(model: nn.Module, ids: Tensor, weight_B: Tensor, *, apart: bool) -> Tensor:
    n, length = ids.shape
    positions = torch.arange(length).repeat(n)[None] if apart else None
    out = model(input_ids=ids.reshape(1, -1), position_ids=positions)
    logits = out.logits.reshape(n, length, -1)[:, :-1].double()
    logp = torch.log_softmax(logits, -1).gather(-1, ids[:, 1:, None])[..., 0]
    return -(logp.sum(1) * weight_B.double()).sum() / (8 * (length - 1))


@pytest.mark.parametrize("mode", MODES)
def test_packed_rows_by_token_labels(mode: str) -> None:
    model = tiny_model(torch.float64)
    checkpointing(model, mode)
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model)
    ids, weight_B = rows()
    labels = (one.repeat_interleave(12)[None] for one in (ROLES, SLOTS))
    with probe.groups(*labels):
        packed(model, ids, weight_B, apart=True).backward()
    (record,) = probe.drain_gradients()
    assert differ(record, reference(torch.float64)) < 1e-10


@pytest.mark.parametrize("apart", [True, False])
def test_leakage_shows_attention_across_packed_rows(apart: bool) -> None:
    model = tiny_model(torch.float64)
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model)
    ids, weight_B = rows()
    labels = (one.repeat_interleave(12)[None] for one in (ROLES, SLOTS))
    with probe.groups(*labels):
        packed(model, ids, weight_B * (ROLES == 1), apart=apart).backward()
    (record,) = probe.drain_gradients()
    leaked = 1 - mass_shares(by_role(record))[by_role(record).labels.index("aggregator")]
    assert leaked < 1e-20 if apart else leaked > 0.01


def test_faults_in_flight() -> None:
    model = tiny_model(torch.float64)
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model)
    ids, weight_B = rows()
    strange_role, strange_slot = ROLES.clone(), SLOTS.clone()
    strange_role[2] = 9
    strange_slot[0] = 7
    with probe.groups(strange_role, strange_slot):
        loss_of(model, ids, weight_B).backward()
    (record,) = probe.drain_gradients()
    assert probe.faults() == {
        "role gradients: unknown role": 1,
        "role gradients: slot outside of the role's slots": 1,
    }
    assert probe.faults() == {}
    model.zero_grad()
    expected = separate(model, ids, weight_B, torch.tensor([9, 1, 9, 2, 3, 0, 1, 3]))[:4]
    assert differ(record, expected) < 1e-10


def test_rows_that_do_not_fit_are_no_numbers() -> None:
    model = tiny_model()
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model)
    with probe.groups(ROLES[:5], SLOTS[:5]):
        loss_of(model, *rows()).backward()
    assert probe.drain_gradients() == []
    assert probe.faults() == {"role gradients: rows do not fit their labels in shared": 28}
    assert flat(trained(model)).isfinite().all()


def test_misuse() -> None:
    probe = RoleGradientProbe(VOTING)
    probe.attach(tiny_model())
    with pytest.raises(CaptureError, match="no slot was given"):
        probe.set_groups(ROLES)
    with pytest.raises(CaptureError, match="one shape"):
        probe.set_groups(ROLES, SLOTS[:3])
    with pytest.raises(ValueError, match="'fold', 'full' or 'sketch'"):
        RoleGradientProbe(VOTING, store="hook")
    with pytest.raises(ValueError, match="every=0"):
        RoleGradientProbe(VOTING, every=0)


def test_names_of_roles_and_no_slots() -> None:
    model = tiny_model(torch.float64)
    probe = RoleGradientProbe(VOTING, every=1, slots=False)
    probe.attach(model)
    names = [VOTING.role_names[index] for index in ROLES.tolist()]
    with probe.groups(names):
        loss_of(model, *rows()).backward()
    (record,) = probe.drain_gradients()
    assert record.labels == ("generator", "aggregator")
    assert differ(record, separate(model, *rows(), ROLES)) < 1e-10


def test_detach_leaves_nothing_behind() -> None:
    model = tiny_model()
    before = [set(vars(one)) for one in model.modules()]
    probe = RoleGradientProbe(VOTING)
    probe.attach(model)
    probe.attach(model)
    with probe.groups(ROLES, SLOTS):
        loss_of(model, *rows()).backward()
    probe.detach()
    assert [set(vars(one)) for one in model.modules()] == before
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert not any(one._backward_hooks for one in model.parameters())
    assert probe.drain_gradients() == []


def test_what_cannot_be_attached_to() -> None:
    with pytest.raises(AttachError, match="RoleOrderedGradients"):
        RoleGradientProbe(VOTING).attach(torch.compile(tiny_model()))
    full = Qwen3ForCausalLM(tiny_model().config)
    with pytest.raises(AttachError, match="sketch"):
        RoleGradientProbe(VOTING).attach(full)
    with pytest.raises(AttachError, match="not in the model"):
        RoleGradientProbe(VOTING).attach(tiny_model(), adapters={"solver": "shared"})


def test_full_fine_tuning_by_sketch() -> None:
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(tiny_model(hidden=64).config)
    ids, weight_B = rows()
    layers = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
    gradients = []
    for role in (0, 1):
        model.zero_grad()
        loss_of(model, ids, weight_B * (role == ROLES)).backward()
        gradients.append(flat(layers))
    probe = RoleGradientProbe(VOTING, every=1, store="sketch", slots=False)
    coverage = probe.attach(model)
    assert {"embeddings", "not"} <= {why.split()[0] for why in coverage.uncovered}
    with probe.groups(ROLES):
        loss_of(model, ids, weight_B).backward()
    (record,) = probe.drain_gradients()
    assert 0 < record.relative_error < coverage.relative_error
    expected = gram(gradients).diagonal().sqrt()
    got = torch.tensor(matrix(record)).diagonal().sqrt()
    assert ((got / expected - 1).abs() < 3 * record.relative_error).all()
