"""Which gradients of a model are followed, and where they go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from gradient_models import ROLES, SLOTS, VOTING, loss_of, rows, tiny_model
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard

from roledrift.capture.closure import Closure
from roledrift.capture.following import Parameter, Shards, follow
from roledrift.capture.gradient_store import FullStore
from roledrift.capture.gradients import RoleGradientProbe
from roledrift.capture.linear_taps import Accumulator


@pytest.fixture
def one_rank(tmp_path: Path) -> Iterator[None]:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1
    )
    yield
    distributed.destroy_process_group()


def closures(*names: str) -> dict[str, Closure]:
    made = {}
    for name in names:
        ledger = Accumulator(name, 2)
        ledger.names, ledger.shapes = ["layer"], [(2, 3)]
        ledger.store = FullStore([(2, 3)], 2, dtype=torch.float64, device=torch.device("cpu"))
        made[name] = Closure(ledger, torch.zeros((), dtype=torch.float64))
    return made


def test_each_trained_parameter_is_followed_once_by_its_policies() -> None:
    model = nn.ModuleDict(
        {
            "one": nn.Linear(3, 2, dtype=torch.float64),
            "frozen": nn.Linear(3, 2, dtype=torch.float64).requires_grad_(False),
            "b": nn.ModuleDict({"two": nn.Linear(3, 2, dtype=torch.float64)}),
        }
    )
    model["same"] = model["one"]
    both = closures("a", "b")
    found = follow(model, both, {id(model["one"]): ("a", 0)})
    assert all(isinstance(one, Parameter) for one in found)
    assert [(one.weight, one.start) for one in found] == [(0, 0), (None, 6), (None, 8), (None, 14)]
    # The bias of no adapter moves with both policies; what stands under an adapter with its own.
    assert [len(one.closures) for one in found] == [1, 2, 1, 1]
    for one in found:
        one.hook()
        one.hook()
        assert not one.missed()
    both["a"].ledger.tapped.add(0)
    total = sum(
        model[name](torch.ones(1, 3, dtype=torch.float64)).sum() for name in ("one", "same")
    )
    total.backward()
    assert both["a"].arrived == 1
    assert both["a"].ledger.store.group(-1)[0].sum() == 12
    for one in found:
        one.remove()
    model["one"](torch.ones(1, 3, dtype=torch.float64)).sum().backward()
    assert both["a"].arrived == 1


@pytest.mark.usefixtures("one_rank")
def test_what_fsdp2_shards_is_followed_from_the_forward_that_gathers_it() -> None:
    model = tiny_model(torch.float64)
    for layer in model.base_model.model.model.layers:
        fully_shard(layer)
    fully_shard(model)
    probe = RoleGradientProbe(VOTING, every=1, store="full")
    probe.attach(model)
    ids, weight_B = rows()
    for _ in range(2):
        for part in (slice(0, 4), slice(4, 8)):
            with probe.groups(ROLES[part], SLOTS[part]):
                loss_of(model, ids[part], weight_B[part]).backward()
        (record,) = probe.drain_gradients()
        assert record.closure < 1e-7
        assert record.covered == 1
    assert all(
        not one._forward_pre_hooks or "FSDP" in type(one).__name__ for one in model.modules()
    )


@pytest.mark.usefixtures("one_rank")
def test_a_forward_that_gathers_nothing_is_missed() -> None:
    model = fully_shard(nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2)))
    found = follow(model, closures("a"), {})
    (shards,) = found
    assert isinstance(shards, Shards)
    assert len(shards.leaves) == 4
    shards.hook()
    with torch.no_grad():
        model(torch.ones(1, 3))
    assert shards.missed(), "no gradient comes from this forward, and none was followed"
    model(torch.ones(1, 3)).sum().backward()
    assert not shards.missed()
    shards.remove()
    assert shards.missed()
    model.requires_grad_(False)
    assert not shards.missed(), "nothing is trained"
