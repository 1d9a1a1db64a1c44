"""One of two gloo processes of test_gradients_ranks: measures its half of the rows."""

from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

import torch
from gradient_models import ROLES, SLOTS, VOTING, fused_mlp, loss_of, rows, tiny_model
from torch import Tensor, distributed, nn
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    fully_shard,
    register_fsdp_forward_method,
)
from torch.distributed.fsdp.wrap import lambda_auto_wrap_policy
from torch.nn.parallel import DistributedDataParallel

from roledrift.capture.gradients import RoleGradientProbe
from roledrift.capture.role_ordered import RoleOrderedGradients
from roledrift.records import GramRecord

# The second rank lacks the aggregator and one slot: the registry must not depend on what is seen.
HALVES = (torch.tensor([2, 4, 7, 3]), torch.tensor([0, 1, 5, 6]))


def wrapped(kind: str) -> nn.Module:
    model = tiny_model(torch.float64, r=16)
    if "norms" in kind:
        for name, value in model.named_parameters():
            value.requires_grad_("lora_" in name or "norm" in name)
    if "fused" in kind:
        for layer in model.base_model.model.model.layers:
            layer.mlp.forward = MethodType(fused_mlp, layer.mlp)
    if kind.startswith("ddp"):
        return DistributedDataParallel(model)
    if kind.startswith("fsdp1"):
        # As PEFT's policy does: what is trained apart from what is frozen.
        return FullyShardedDataParallel(
            model,
            device_id=torch.device("cpu"),
            auto_wrap_policy=partial(lambda_auto_wrap_policy, lambda_fn=is_trained_leaf),
            use_orig_params=kind == "fsdp1 orig",
        )
    for layer in model.base_model.model.model.layers:
        fully_shard(layer)
    fully_shard(model)
    if "method" in kind:
        # A forward of another name: hooks of the outermost module do not run.
        model.score = model.forward
        register_fsdp_forward_method(model, "score")
    return model


def is_trained_leaf(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear) and module.weight.requires_grad


def local_loss(model: Callable[..., Any], rank: int, at: Tensor) -> Tensor:
    ids, weight_B = rows()
    # Ranks average their gradients, so each counts its rows twice to give what one process gives.
    return 2 * loss_of(model, ids[at], weight_B[at])


def probed(kind: str, rank: int, **settings: str) -> list[GramRecord]:
    model = wrapped(kind)
    probe = RoleGradientProbe(VOTING, every=1, **settings)
    probe.attach(model)
    run = model.score if "method" in kind else model
    for at in HALVES[rank].split(2):
        with probe.groups(ROLES[at], SLOTS[at]):
            local_loss(run, rank, at).backward()
    return list(probe.drain_gradients())


def ordered(kind: str, rank: int, store: str) -> list[GramRecord]:
    model = wrapped(kind)
    its = RoleOrderedGradients(VOTING, every=1, store=store, slots=False)
    its.attach(model)
    ids, weight_B = rows()
    for role in (0, 1):
        at = HALVES[rank]
        # Every rank runs every backward: collectives need the same number of them.
        weight = weight_B[at] * (ROLES[at] == role)
        (2 * loss_of(model, ids[at], weight)).backward()
        its.mark(VOTING.role_names[role])
    return list(its.drain_gradients())


def measured(rank: int, address: str) -> dict[str, list[Any]]:
    """What a rank measures, case by case."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    found: dict[str, list[GramRecord]] = {}
    for kind in ("ddp", "fsdp2"):
        for store in ("full", "fold"):
            found[f"{kind} tap {store}"] = probed(kind, rank, store=store)
            found[f"{kind} ordered {store}"] = ordered(kind, rank, store)
    for kind in (
        "fsdp1",
        "fsdp1 orig",
        "ddp norms",
        "fsdp2 norms",
        "fsdp2 fused",
        "fsdp2 norms method",
    ):
        found[f"{kind} tap full"] = probed(kind, rank, store="full")
    plain = {
        name: [
            (one.labels, one.products, one.relative_error, one.closure, one.covered, one.bypassed)
            for one in records
        ]
        for name, records in found.items()
    }
    distributed.barrier()
    return plain
