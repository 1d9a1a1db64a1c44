"""Training does not notice the probe: not a bit, not a byte kept, not a wait for the device."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext

import pytest
import torch
from gradient_models import (
    ROLES,
    SLOTS,
    VOTING,
    checkpointing,
    differ,
    loss_of,
    reference,
    rows,
    tiny_model,
    trained,
)
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from roledrift.capture.gradients import RoleGradientProbe
from roledrift.capture.linear_taps import Watch
from roledrift.protocols import GradientSource, SpanSource

MODES = ["none", "nonreentrant", "reentrant"]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def trained_to(mode: str, autocast: bool, parts: int, store: str | None) -> str:
    """Digest of the weights and the random state after three steps; of these, two are measured."""
    model = tiny_model(lora_dropout=0.1)
    checkpointing(model, mode)
    optimizer = torch.optim.AdamW(trained(model), lr=1e-2)
    probe = RoleGradientProbe(VOTING, every=2, store=store or "fold")
    if store:
        probe.attach(model)
    torch.manual_seed(7)
    for _ in range(3):
        ids, weight_B = rows()
        for at in torch.arange(8).chunk(parts):
            context = torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext()
            with probe.groups(ROLES[at], SLOTS[at]), context:
                loss = loss_of(model, ids[at], weight_B[at])
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        assert len(probe.drain_gradients()) == (store is not None and probe._step % 2)
    digest = hashlib.sha256()
    for parameter in trained(model):
        digest.update(parameter.detach().numpy().tobytes())
    digest.update(torch.get_rng_state().numpy().tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("parts", [2, 4])
def test_training_is_bit_identical(mode: str, autocast: bool, parts: int) -> None:
    plain = trained_to(mode, autocast, parts, None)
    for store in ("fold", "sketch") if parts == 2 else ("fold",):
        assert trained_to(mode, autocast, parts, store) == plain, store


def saved_bytes(model: nn.Module, *, autocast: bool) -> int:
    """Bytes that autograd keeps between forward and backward, each storage once."""
    kept: dict[int, Tensor] = {}

    def pack(one: Tensor) -> Tensor:
        kept[one.untyped_storage().data_ptr()] = one
        return one

    ids, weight_B = rows()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda one: one):
        context = torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext()
        with context:
            loss = loss_of(model, ids, weight_B)
    total = sum(one.untyped_storage().nbytes() for one in kept.values())
    loss.backward()
    return total


@pytest.mark.parametrize("roles", [ROLES, ROLES * 0], ids=["mixed", "one"])
@pytest.mark.parametrize("autocast", [False, True])
def test_keeps_no_activation_that_autograd_does_not(autocast: bool, roles: Tensor) -> None:
    model = tiny_model()
    plain = saved_bytes(model, autocast=autocast)
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model)
    with probe.groups(roles, SLOTS * (roles == ROLES)):
        watched = saved_bytes(model, autocast=autocast)
    assert len(probe.drain_gradients()) == 1
    assert watched <= plain


@pytest.mark.parametrize("mode", ["nonreentrant", "reentrant"])
def test_checkpointing_still_frees_activations(mode: str) -> None:
    import weakref

    model = tiny_model()
    checkpointing(model, mode)
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model)
    seen: list[weakref.ref[Tensor]] = []
    for name, module in model.named_modules():
        if name.endswith("lora_A.default"):
            module.register_forward_pre_hook(lambda _, args: seen.append(weakref.ref(args[0])))
    with probe.groups(ROLES, SLOTS):
        loss = loss_of(model, *rows())
    assert len(seen) == 14
    assert not [one for one in seen if one() is not None]
    loss.backward()


class _Synchronising(TorchDispatchMode):
    """Counts operations that make a host wait for an accelerator."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        name = func.__name__
        if "local_scalar_dense" in name or "nonzero" in name or "masked_select" in name:
            self.found.append(name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("on_host", [True, False])
def test_waits_for_the_device_only_when_drained(
    on_host: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With labels that lie on the device as well; both cuts give the same numbers."""
    label = Watch.label

    def as_if_on_device(watch: Watch, rows_: object) -> None:
        if rows_ is not None:
            rows_.on_host = on_host
        label(watch, rows_)

    monkeypatch.setattr(Watch, "label", as_if_on_device)
    model = tiny_model(torch.float64)
    ids, weight_B = rows()
    found = {}
    for watched in (False, True):
        probe = RoleGradientProbe(VOTING, every=1)
        if watched:
            probe.attach(model)
        with _Synchronising() as counter:
            with probe.groups(ROLES, SLOTS):
                loss = loss_of(model, ids, weight_B)
            loss.backward()
        found[watched] = counter.found
    assert found[True] == found[False]
    (record,) = probe.drain_gradients()
    assert differ(record, reference(torch.float64)) < 1e-10


def test_schedule_and_idle_steps() -> None:
    model = tiny_model()
    probe = RoleGradientProbe(VOTING)
    probe.attach(model)
    assert isinstance(probe, GradientSource)
    assert not isinstance(probe, SpanSource)
    layer = model.get_submodule("base_model.model.model.layers.0.mlp.up_proj.lora_A.default")
    measured = []
    for index in range(9):
        with probe.groups(ROLES, SLOTS):
            y = layer(torch.randn(8, 3, 32))
            loss_of(model, *rows()).backward()
        assert ("_Tap" in type(y.grad_fn).__name__) == probe.measuring, "idle layers are plain"
        if probe.drain_gradients():
            measured.append(index)
    assert measured == [0, 4, 8]


def test_a_folded_policy_of_any_size_fits_one_mebibyte() -> None:
    model = tiny_model(r=32)
    coverage = RoleGradientProbe(VOTING).attach(model)
    assert coverage.buffer_bytes + 2 * 4 * 32_749 <= 1 << 20
    assert coverage.method == "folded"
    assert coverage.relative_error == pytest.approx(0.0039, abs=1e-4)
