"""What else happens to a model that is measured: copies, pickles, others' hooks, compilers.

All of it happens inside a step that is measured, between two micro-batches: only then is anything
in the model.
"""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from accelerate.hooks import ModelHook, add_hook_to_module, remove_hook_from_module
from gradient_models import (
    ROLES,
    SLOTS,
    VOCAB,
    VOTING,
    differ,
    loss_of,
    move_off_zero,
    reference,
    rows,
    step,
    tiny_model,
    trained,
)
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from transformers.modeling_outputs import CausalLMOutput

from roledrift import RoleBatch, Sample, TokenCapture, open_monitor
from roledrift.capture.closure import NO_LAYER
from roledrift.capture.gradients import RoleGradientProbe
from roledrift.store.reader import open_run
from roledrift.workflow import Role, Workflow

LAYER = "base_model.model.model.layers.0.mlp.up_proj.lora_A.default"


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def in_the_middle(model: nn.Module, then: Callable[[], None]) -> RoleGradientProbe:
    """A probe that has seen the first of two micro-batches; ``then`` happens in between."""
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model)
    ids, weight_B = rows()
    for part in (slice(0, 4), slice(4, 8)):
        with probe.groups(ROLES[part], SLOTS[part]):
            loss_of(model, ids[part], weight_B[part]).backward()
        if part.start == 0:
            then()
    return probe


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: AveragedModel(model).module])
def test_a_copy_computes_with_its_own_weights(copied: Callable[[nn.Module], nn.Module]) -> None:
    model = tiny_model(torch.float64)
    ids, weight_B = rows()
    made: list[nn.Module] = []

    def then() -> None:
        plain = loss_of(model, ids, weight_B)
        made.append(copied(model))
        assert torch.equal(loss_of(made[0], ids, weight_B), plain)
        for one in trained(made[0]):
            one.data += 5.0
        assert not torch.equal(loss_of(made[0], ids, weight_B), plain)
        assert torch.equal(loss_of(model, ids, weight_B), plain)
        loss_of(made[0], ids, weight_B).backward()

    probe = in_the_middle(model, then)
    (record,) = probe.drain_gradients()
    assert differ(record, reference(torch.float64)) < 1e-10, "the copy's gradients are its own"
    assert all(one.grad is not None for one in trained(made[0]))


def test_a_model_is_saved_whole() -> None:
    model = tiny_model()

    def then() -> None:
        for file in (io.BytesIO(), io.BytesIO()):
            torch.save(model, file)
            file.seek(0)
            loaded = torch.load(file, weights_only=False)
            ids, weight_B = rows()
            assert torch.equal(loss_of(loaded, ids, weight_B), loss_of(model, ids, weight_B))
        assert b"roledrift.monitor" not in pickle.dumps(model)

    (record,) = in_the_middle(model, then).drain_gradients()
    assert record.covered == 1


class _Counting(ModelHook):
    def __init__(self) -> None:
        self.calls = 0

    def pre_forward(self, module: nn.Module, *args: Tensor, **kwargs: object):  # type: ignore[no-untyped-def]
        self.calls += 1
        return args, kwargs


def test_an_accelerate_hook_is_called_and_stays() -> None:
    model, hook = tiny_model(torch.float64), _Counting()
    layer = model.get_submodule(LAYER)
    add_hook_to_module(layer, hook)
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model)
    record = step(probe, model, 2)
    assert hook.calls == 2
    assert differ(record, reference(torch.float64)) < 1e-10
    probe.detach()
    assert layer._hf_hook is hook
    loss_of(model, *rows())
    assert hook.calls == 3
    remove_hook_from_module(layer)
    assert layer.forward.__func__ is nn.Linear.forward


def test_a_forward_of_somebody_else_stays_and_works_as_before() -> None:
    model = tiny_model(torch.float64)
    layer = model.get_submodule(LAYER)
    own = layer.forward

    def forward(x: Tensor) -> Tensor:
        return own(x) + 0.0

    layer.forward = forward
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model)
    record = step(probe, model, 2)
    assert record.covered == 1
    assert differ(record, reference(torch.float64)) < 1e-10
    probe.detach()
    assert layer.forward is forward


def test_two_probes_measure_the_same() -> None:
    model = tiny_model(torch.float64)
    first, second = (RoleGradientProbe(VOTING, every=1) for _ in range(2))
    first.attach(model)
    second.attach(model)
    ids, weight_B = rows()
    with first.groups(ROLES, SLOTS), second.groups(ROLES, SLOTS):
        loss_of(model, ids, weight_B).backward()
    for probe in (first, second):
        (record,) = probe.drain_gradients()
        assert differ(record, reference(torch.float64)) < 1e-10
        assert probe.faults() == {}
    second.detach()
    assert differ(step(first, model, 2), reference(torch.float64)) < 1e-10


def test_the_model_does_not_hold_the_probe() -> None:
    model = tiny_model()
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(model)
    probe.set_groups(ROLES, SLOTS)
    gone = weakref.ref(probe._ledgers[0])
    del probe
    gc.collect()
    assert gone() is None
    loss_of(model, *rows()).backward()


def test_nothing_is_in_the_model_between_steps() -> None:
    model = tiny_model()
    probe = RoleGradientProbe(VOTING, every=2)
    probe.attach(model)

    def hooks() -> int:
        parameters = sum(len(one._backward_hooks or ()) for one in model.parameters())
        return parameters + sum(
            len(one._forward_hooks) + len(one._forward_pre_hooks) for one in model.modules()
        )

    assert hooks() == 0
    step(probe, model, 2)
    assert hooks() == 0
    with probe.groups(ROLES, SLOTS):
        assert hooks() == 0, "a step that is not measured"


def test_a_frozen_adapter_is_measured_by_its_outputs(tmp_path: Path) -> None:
    """Two policies in one PEFT model, one of which only acts: no gradient, and no fault."""
    roles = (Role("solver"), Role("judge", duty="judge", trained=False))
    workflow = Workflow("pair", roles, ("solver", "judge"))
    model = tiny_model()
    for name in workflow.policies:
        model.add_adapter(name, LoraConfig(r=4, target_modules=["q_proj", "up_proj"]))
    move_off_zero(model)
    optimizer = torch.optim.AdamW(trained(model, "solver"), lr=1e-3)
    ids, weight_B = rows()
    monitor = open_monitor(workflow, tmp_path, config={"budget": 0.0, "tier": "full"})
    capture, probe = TokenCapture(workflow), RoleGradientProbe(workflow, every=1)
    for part in (capture, probe):
        monitor.attach(part)
    for name in workflow.policies:
        model.set_adapter(name)
        for one in trained(model, "judge"):
            one.requires_grad_(False)
        if name == "solver":
            probe.attach(model)
    for number in range(6):
        for name in workflow.policies:
            model.base_model.set_adapter(name, inference_mode=name == "judge")
            with probe.groups([name] * 8, [0] * 8), torch.set_grad_enabled(name == "solver"):
                logits = model(input_ids=ids).logits[:, :-1].float()
            logp = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
            capture.add(
                RoleBatch.from_padded(
                    workflow, role=[name] * 8, mask=torch.ones_like(logp), logp=logp.detach()
                )
            )
            monitor.add_samples([Sample(number, name, "text", prompt="p")])
            if name == "solver":
                (-(logp.sum(1) * weight_B).mean()).backward()
        optimizer.step()
        optimizer.zero_grad()
        monitor.end_step(number)
    monitor.close()
    seen = open_run(tmp_path)
    for record in seen.steps():
        assert [one.policy for one in record.gradients] == ["solver"]
        assert record.gradients[0].closure < 1e-5
        assert record.groups["judge"]["length"].mean == 11
        assert record.groups["judge"]["ppl"].n
        assert record.faults == {}
    assert {one.role for one in seen.samples()} == {"solver", "judge"}
    assert not seen.alerts()
    before, after = (one.mean("judge", "ppl") for one in (seen.steps()[0], seen.steps()[-1]))
    assert before == after, "it acts with the adapter that does not move"


def test_labels_without_a_drain_do_not_pile_up() -> None:
    probe = RoleGradientProbe(VOTING, every=1)
    probe.attach(tiny_model())
    for _ in range(5000):
        probe.set_groups(ROLES, SLOTS)
    assert len(probe._watch.history) < 5000


class OneLayer(nn.Module):
    """Little to trace: a compiler takes seconds for one layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.up_proj = nn.Embedding(VOCAB, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, VOCAB)

    def forward(self, input_ids: Tensor) -> CausalLMOutput:
        return CausalLMOutput(logits=self.head(torch.tanh(self.up_proj(self.embed(input_ids)))))


def one_layer() -> nn.Module:
    torch.manual_seed(0)
    model = get_peft_model(OneLayer(), LoraConfig(r=2, target_modules=["up_proj"]))
    move_off_zero(model)
    return model


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_model_that_is_compiled_later_keeps_its_graphs(backend: str) -> None:
    """At set-up a compiled model is refused. One that is compiled later costs one more trace."""
    found = {}
    for watched in (False, True):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        model = one_layer()
        probe = RoleGradientProbe(VOTING, every=1)
        if watched:
            probe.attach(model)
        compiled = torch.compile(model, backend=backend)
        optimizer = torch.optim.AdamW(trained(model), lr=1e-2)
        ids, weight_B = rows()
        records = 0
        for _ in range(4):
            with probe.groups(ROLES, SLOTS):
                loss_of(compiled, ids, weight_B).backward()
            optimizer.step()
            optimizer.zero_grad()
            records += len(probe.drain_gradients())
        stats = dict(torch._dynamo.utils.counters["stats"])
        found[watched] = (
            stats["unique_graphs"],
            [one.detach().clone() for one in trained(model)],
            records,
        )
    assert found[True][0] <= 2 * found[False][0]
    assert all(torch.equal(a, b) for a, b in zip(found[True][1], found[False][1], strict=True))
    assert found[True][2] == 0, "nothing has passed the taps, so there are no numbers"
    assert probe.faults() == {f"role gradients of shared refused: {NO_LAYER}": 1}
    assert not probe.measuring
