"""One of two processes of test_verl_worker.py.

The second rank has no memory left for what measures gradients; then both train on.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from roledrift_verl.wire import Order
from roledrift_verl.worker import WorkerWatch
from torch import nn

from roledrift.config import from_mapping
from roledrift.workflow import VOTING


class _Full(nn.Linear):
    def named_modules(self, *_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError


def measured(rank: int, meeting: str) -> list[Any]:
    """Begin a mini-batch, then add up over the ranks as a backward does."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    layer = (_Full if rank else nn.Linear)(4, 4)
    engine = SimpleNamespace(module=layer, prepare_model_inputs=None)
    config = from_mapping({"gradients": {"store": "sketch", "every": 1}})
    watch = WorkerWatch()
    with watch.fenced("begin"):
        watch.begin(Order(1, VOTING, config), engine)
    gradient = torch.ones(1)
    dist.all_reduce(gradient)  # one rank alone in here would hang
    report = watch.end(last=True)
    dist.barrier()
    return [report.coverage, dict(report.faults), "forward" in vars(layer), gradient.item()]
