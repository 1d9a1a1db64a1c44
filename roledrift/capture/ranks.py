"""Adding over the ranks of ``torch.distributed`` and spreading the first rank's decision."""

from __future__ import annotations

from typing import Self, cast

import torch.distributed as dist

from roledrift.errors import AttachError
from roledrift.sums import Sums, add


class TorchReducer:
    """A :class:`roledrift.protocols.Reducer` over a process group.

    Whole sums travel, keyed by role and name, so a rank that has not seen a role sends nothing for
    it and no rank waits for a key that another one lacks. They are a few kilobytes per step.

    Args:
        group: Process group; None for all ranks. With a GPU-only backend the ranks need their
            current CUDA device set, as for any collective over objects.

    Raises:
        AttachError: If ``torch.distributed`` is not initialised.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            raise AttachError(
                "torch.distributed is not initialised: call init_process_group first, "
                "or leave the reducer out in a single process"
            )
        self._group = group

    @classmethod
    def if_several(cls) -> Self | None:
        """A reducer if several processes are at work, else None."""
        initialised = dist.is_available() and dist.is_initialized()
        return cls() if initialised and dist.get_world_size() > 1 else None

    def is_first(self) -> bool:
        """True on rank 0 of the group."""
        return dist.get_rank(self._group) == 0

    def add(self, sums: Sums) -> Sums:
        """Sum over ranks, in rank order, the same on every rank."""
        parts: list[Sums | None] = [None] * dist.get_world_size(self._group)
        dist.all_gather_object(parts, sums, group=self._group)
        return add(cast(list[Sums], parts))

    def spread(self, stop: bool) -> bool:
        """Rank 0's decision, on every rank."""
        first = 0 if self._group is None else dist.get_global_rank(self._group, 0)
        decision = [stop]
        dist.broadcast_object_list(decision, src=first, group=self._group)
        return bool(decision[0])
