"""One of the processes of test_ranks.py."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from roledrift.capture.batch import RoleBatch
from roledrift.capture.ranks import TorchReducer
from roledrift.capture.tokens import TokenCapture
from roledrift.measure.catalogue import probes_for
from roledrift.sums import Sums, add
from roledrift.workflow import VOTING


def measured(ranks: list[int]) -> Sums:
    """Sums of the batches that ``ranks`` see.

    Rank 0 has no aggregator, rank 1 has both roles, rank 2 no row of any.
    """
    capture = TokenCapture(VOTING)
    for rank in ranks:
        if rank == 2:
            continue
        draw = torch.Generator().manual_seed(rank)
        a, b = -torch.rand(4, 6, generator=draw), -torch.rand(4, 6, generator=draw)
        capture.add(
            RoleBatch.from_padded(
                VOTING,
                role=["generator"] * 3 + [("generator", "aggregator")[rank]],
                mask=torch.rand(4, 6, generator=draw) < 0.8,
                slot=[rank, rank, rank, 0],
                group=[rank, rank, rank, 2 + rank],
                reward=[1.0, 0.0, 1.0, 1.0],
                logp=a,
                old_logp=b,
            )
        )
    tables, probes = capture.drain(), probes_for("economy", VOTING)
    return add(
        probe.measure(table) for table in tables for probe in probes if probe.needs <= table.present
    )


def reduced(rank: int, count: int, meeting: str) -> dict[str, Any]:
    """Reduce, spread a stop, and say what this rank got."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=count)
    reducer = TorchReducer()
    result = {
        "first": reducer.is_first(),
        "sums": reducer.add(measured([rank])),
        "empty": reducer.add({}),
        "stop": [reducer.spread(stop) for stop in (rank == 0, rank > 0)],
    }
    dist.barrier()
    return result
