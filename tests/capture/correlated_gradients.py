"""Gradients of groups that are partly alike, and their exact inner products."""

from __future__ import annotations

import torch

SHAPES = [(64, 3000), (1700, 64), (7, 13)]


def gradients(n_groups: int = 4) -> list[list[torch.Tensor]]:
    """Per group one matrix per shape, correlated between groups."""
    source = torch.Generator().manual_seed(0)
    shared = [torch.randn(*two, generator=source, dtype=torch.float64) for two in SHAPES]
    return [
        [one + torch.randn(one.shape, generator=source, dtype=torch.float64) for one in shared]
        for _ in range(n_groups)
    ]


def exact(found: list[list[torch.Tensor]]) -> torch.Tensor:
    flat = torch.stack([torch.cat([one.flatten() for one in its]) for its in found])
    return flat @ flat.t()


def assert_whole_is_the_sum(got: torch.Tensor) -> None:
    """The last row of a store that got every group's gradient as a part of the whole one."""
    torch.testing.assert_close(got[:-1].sum(0), got[-1])
