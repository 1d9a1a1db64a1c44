"""One of two processes of test_monitor_ranks.py.

Only rank 0 has an aggregator, so only rank 0's rows show that its answers grow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from roledrift import SpanTable, open_monitor
from roledrift.capture.ranks import TorchReducer
from roledrift.workflow import VOTING


def spans(rank: int, step: int) -> SpanTable:
    """Three generators of constant length, and on rank 0 an aggregator that grows from step 15."""
    grown = 5 if step < 15 else 15 + step % 2
    return SpanTable(
        VOTING.role_names,
        role_N=np.array([0, 0, 0, 1] if rank == 0 else [0, 0, 0]),
        tokens_N=np.array([20, 21, 19, grown] if rank == 0 else [20, 21, 19]),
    )


def trained(rank: int, folder: str) -> dict[str, Any]:
    """Train until the monitor says stop; say when that was and why."""
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    monitor = open_monitor(
        "voting",
        f"{folder}/run",
        config={"stop_on": ["length_inflation"], "notify": {"console": False}},
        reducer=TorchReducer(),
    )
    stopped, weight = None, torch.zeros(1)
    for step in range(60):
        monitor.observe(spans(rank, step))
        gradient = torch.full((1,), float(rank + 1))
        dist.all_reduce(gradient)  # one rank alone in here would hang
        weight += gradient
        decision = monitor.end_step(step)
        if decision.stop:
            stopped = step
            break
    monitor.close()
    dist.barrier()
    return {"stopped": stopped, "alerts": len(decision.alerts), "weight": weight.item()}
