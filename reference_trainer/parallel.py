"""Several processes through ``torch.distributed``: sums over ranks, and a base model in parts.

Gradients are added up once per optimizer step, bucket by bucket. ``DistributedDataParallel`` would
do that inside backwards of a model that always trains the same parameters; here each policy trains
an adapter of its own, in as many backwards as a mini-batch has roles. What travels is the same.

In parts (FSDP2), the frozen base weights are sharded and the adapters stay whole on every rank,
with their optimizer: they are small, PEFT saves and loads them as ever, and a frozen weight has no
gradient to be scattered.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from socket import gethostname
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn import Module, Parameter
from transformers import PreTrainedModel

from reference_trainer.errors import RankError, SettingsError
from reference_trainer.ranks import Mode, ParallelSettings, Ranks
from roledrift import RoleDriftError

T = TypeVar("T")


class _Leaves:
    """What lives until the process ends."""


_LEAVES = _Leaves()

_BUCKET = 1 << 23
"""Numbers that are added over ranks at once: 32 MiB in single precision."""


class TorchRanks:
    """The ranks of the default process group.

    Args:
        mode: What a rank holds of the base model.
    """

    def __init__(self, mode: Mode) -> None:
        self.number = dist.get_rank()
        self.count = dist.get_world_size()
        self._mode = mode
        self._sharded: _Sharded | None = None

    def wait(self) -> None:
        """Return when every rank is here."""
        dist.barrier()

    def gather(self, items: Sequence[T]) -> list[T]:
        """The items of all ranks, in the order of the ranks."""
        parts: list[Any] = [None] * self.count
        dist.all_gather_object(parts, list(items))
        return [item for part in parts for item in part]

    def spread(self, value: T) -> T:
        """The value that rank 0 has."""
        values = [value]
        dist.broadcast_object_list(values, src=0)
        return values[0]

    def sum(self, values: Sequence[float]) -> list[float]:
        """Element-wise sums over the ranks, in double precision and the order of the ranks."""
        rows: list[Any] = [None] * self.count
        dist.all_gather_object(rows, list(values))
        return [float(sum(column)) for column in zip(*rows, strict=True)]

    def sum_gradients(self, parameters: Sequence[Parameter]) -> None:
        """Add the ranks' gradients up, in place."""
        for bucket in _buckets(
            [parameter.grad for parameter in parameters if parameter.grad is not None]
        ):
            flat = torch.cat([gradient.flatten() for gradient in bucket])
            dist.all_reduce(flat)
            done = 0
            for gradient in bucket:
                gradient.copy_(flat[done : done + gradient.numel()].view_as(gradient))
                done += gradient.numel()

    def hold(self, model: PreTrainedModel, trained: Sequence[Parameter]) -> None:
        """Shard the base weights, if that is the mode."""
        if self._mode == "fsdp2":
            self._sharded = _Sharded(model, set(trained))

    def whole_model(self) -> AbstractContextManager[None]:
        """While it is entered, every rank holds the whole model."""
        return nullcontext() if self._sharded is None else self._sharded.gathered()


class _Sharded:
    """A causal language model whose frozen decoder weights are spread over the ranks.

    The decoder is the root: the trainer calls it and the output layer one after the other, never
    the model around both. The output layer is therefore a unit of its own; where its weights are
    those of the input embedding they stay whole, because one tensor cannot be in two units.

    Args:
        model: Sharded in place.
        kept: Parameters that stay as they are.
    """

    def __init__(self, model: PreTrainedModel, kept: set[Parameter]) -> None:
        decoder = cast(Any, model.model)
        head, inputs = cast(Any, model.lm_head), decoder.embed_tokens
        mesh = init_device_mesh(next(model.parameters()).device.type, (dist.get_world_size(),))
        tied = head.weight is inputs.weight
        alone = kept | ({head.weight} if tied else set())
        units: list[Module] = [*decoder.layers, *(() if tied else (inputs, head)), decoder]
        for unit in units:
            fully_shard(unit, mesh=mesh, ignored_params=alone, reshard_after_forward=True)
        self._units = [cast(FSDPModule, unit) for unit in units]
        self._roots = [cast(FSDPModule, root) for root in (decoder, *(() if tied else (head,)))]

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Gather all weights now, and give them back at the end."""
        for unit in self._units:
            unit.set_reshard_after_forward(False, recurse=False)
            unit.unshard()
        try:
            yield
        finally:
            for unit in self._units:
                unit.set_reshard_after_forward(True, recurse=False)
            # It also forgets which forwards there were: ranks that made different ones would
            # prefetch different layers in the next backward, and wait for each other for ever.
            for root in self._roots:
                root.reset_iter_state()
            for unit in self._units:
                unit.reshard()


@contextmanager
def joined(settings: ParallelSettings) -> Iterator[Ranks]:
    """Join the process group that the environment describes, and leave it when the process ends.

    An engine in this process may use the group until then: what was made last is ended first.
    After an error the group is not left: that could wait for ranks that wait for this one. The
    launcher ends them when this process has ended.

    Raises:
        RankError: If another rank ended or did not come in time.
        SettingsError: If this torch cannot gather a sharded base model for sampling.
    """
    if settings.mode == "fsdp2" and not hasattr(FSDPModule, "reset_iter_state"):
        raise SettingsError(
            f"parallel.mode = 'fsdp2' needs FSDPModule.reset_iter_state, which torch "
            f"{torch.__version__} does not have: install a newer torch (2.13 has it), or set "
            "parallel.mode = 'ddp', which holds the whole base model in every process"
        )
    backend = "gloo"
    local = int(os.environ.setdefault("LOCAL_RANK", "0"))
    if torch.cuda.is_available() and local < torch.cuda.device_count():
        torch.cuda.set_device(local)
        backend = "cpu:gloo,cuda:nccl"
    # Under `accelerate launch --use_fsdp` transformers loads weights on the first rank only and
    # leaves the others to accelerate, which is not asked here: they would hold an empty model.
    os.environ["FSDP_CPU_RAM_EFFICIENT_LOADING"] = "false"
    leaving = weakref.finalize(_LEAVES, _leave)
    try:
        dist.init_process_group(backend, timeout=timedelta(minutes=settings.patience))
        yield TorchRanks(settings.mode)
        dist.barrier()
    except BaseException as error:
        leaving.detach()
        if isinstance(error, RuntimeError) and _of_the_group(error):
            raise _lost(error, settings) from error
        raise


def _leave() -> None:
    if dist.is_initialized():  # vLLM leaves the group that it finds
        dist.destroy_process_group()


def _lost(error: RuntimeError, settings: ParallelSettings) -> RankError:
    reason = str(error).strip().splitlines()[0]
    return RankError(
        f"process {os.environ['RANK']} of {os.environ['WORLD_SIZE']} (from 0), on {gethostname()}, "
        "has lost another one, which ended or kept it waiting for more than parallel.patience = "
        f"{settings.patience:g} minutes. The messages of that one say why ({reason}). Start the "
        "run again with --resume"
    )


def _of_the_group(error: RuntimeError) -> bool:
    """Whether processes could not talk to each other; gloo has no type of its own for that."""
    if isinstance(error, RoleDriftError):
        return False
    text = str(error).lower()
    return isinstance(error, dist.DistError) or "gloo" in text or "nccl" in text


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Consecutive tensors of one type, as many at a time as fit a bucket; at least one."""
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        full = size + tensor.numel() > _BUCKET or (bucket and bucket[0].dtype != tensor.dtype)
        if bucket and full:
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.numel()
    if bucket:
        yield bucket
