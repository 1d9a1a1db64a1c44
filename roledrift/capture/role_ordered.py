"""Role gradients without touching the model: micro-batches ordered by role, ``.grad`` read between.

After the last micro-batch of a group, ``g = grad now - grad before``. It holds for every trainable
parameter and under torch.compile; it is for loops that control their micro-batches.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, distributed, nn

from roledrift.capture.fold import fold_error, fold_into, fold_signs, fold_width
from roledrift.capture.gradient_store import add_over_ranks, loss_scale, rank_count, sum_dtype
from roledrift.capture.lora_layers import PLAIN, find_parts, policies_of
from roledrift.capture.row_groups import GroupRegistry
from roledrift.errors import AttachError, CaptureError
from roledrift.records import GramRecord
from roledrift.workflow import Workflow


class _Sums:
    """Gradients of one policy at the last mark and per group: folded, or entry by entry."""

    def __init__(
        self, policy: str, parameters: list[nn.Parameter], *, n_groups: int, signs: Tensor | None
    ) -> None:
        self.policy = policy
        self.parameters = parameters
        sizes = [_local(p).numel() for p in parameters]
        self.starts = [sum(sizes[:i]) for i in range(len(sizes))]
        first = parameters[0]
        dtype, device = sum_dtype(first.dtype), first.device
        self.signs = None if signs is None else signs.to(device=device, dtype=dtype)
        self.size = sum(sizes) if signs is None else signs.numel() // 2
        self.before = torch.zeros(self.size, dtype=dtype, device=device)
        self.groups = torch.zeros(n_groups, self.size, dtype=dtype, device=device)
        self.sharded = any(_is_sharded(p) for p in parameters)

    def now(self) -> Tensor:
        """All gradients at present, flattened or folded."""
        out = torch.zeros_like(self.before)
        for parameter, start in zip(self.parameters, self.starts, strict=True):
            if parameter.grad is None:
                continue
            grad = _local(parameter.grad)
            if self.signs is None:
                out[start : start + grad.numel()] = grad.reshape(-1)
            else:
                fold_into(out, self.signs, grad, start)
        return out


class RoleOrderedGradients:
    """Splits gradients by reading ``.grad`` after each group's micro-batches.

    A :class:`roledrift.protocols.GradientSource`. Typical use::

        ordered = RoleOrderedGradients(workflow)
        ordered.attach(model)
        for step in range(steps):
            for role, slot, batches in by_group(micro_batches):
                for batch in batches:
                    loss(model, batch).backward()
                ordered.mark(role, slot)
            optimizer.step(); optimizer.zero_grad()
            records = ordered.drain_gradients()

    Gradients are zero or None at the first backward of a step, every backward is followed by a
    :meth:`mark` before the next group's, and the loss normaliser is the same for all groups.

    Args:
        workflow: Roles, slots and policies.
        every: Measure every this many optimizer steps.
        store: ``"fold"`` or ``"full"``; see :class:`roledrift.capture.gradients.RoleGradientProbe`.
        slots: A group per slot.
    """

    def __init__(
        self,
        workflow: Workflow,
        *,
        every: int = 4,
        store: Literal["fold", "full"] = "fold",
        slots: bool = True,
    ) -> None:
        if store not in ("fold", "full") or every < 1:
            raise ValueError(
                f"store={store!r}, every={every}: store is 'fold' or 'full', every at least 1"
            )
        self.workflow = workflow
        self.registry = GroupRegistry.of(workflow, slots=slots)
        self._every, self._kind = every, store
        self._factor = 1
        self._step = 0
        self._sums: list[_Sums] = []
        self._counts = torch.zeros(len(self.registry.labels))
        self._seconds = 0.0
        self._faults: Counter[str] = Counter()
        self._scaler: Any = None
        self._scale: Tensor | None = None

    def attach(
        self, model: nn.Module, *, adapters: Mapping[str, str] | None = None, scaler: Any = None
    ) -> None:
        """Remember the trainable parameters of each policy; the model is not changed.

        Args:
            model: Wrapped or not, compiled or not.
            adapters: Adapter name to policy name, where they differ.
            scaler: A ``torch.amp.GradScaler``, to take its scale out again.

        Raises:
            AttachError: If nothing is trained, or only some parameters are sharded.
        """
        names = {part.adapter for part in find_parts(model, plain=False)}
        names |= set(getattr(model, "peft_config", {}))
        owned: dict[str, list[nn.Parameter]] = {}
        trained: Counter[str] = Counter()
        for name, parameter in model.named_parameters():
            owner = next((word for word in name.split(".") if word in names), PLAIN)
            if parameter.requires_grad or owner != PLAIN:
                owned.setdefault(owner, []).append(parameter)
                trained[owner] += parameter.requires_grad
        policies = policies_of(trained, self.workflow, adapters)
        if not policies:
            raise AttachError(
                f"{type(model).__name__} has no trainable parameter: attach after freezing is done"
            )
        n_groups = len(self.registry.labels)
        folded = self._kind == "fold"
        signs = fold_signs(fold_width(n_groups * len(policies))) if folded else None
        self._sums = [
            _Sums(policy, owned[name], n_groups=n_groups, signs=signs)
            for name, policy in policies.items()
        ]
        for sums in self._sums:
            if sums.sharded != all(_is_sharded(p) for p in sums.parameters):
                raise AttachError(
                    f"only some parameters of policy {sums.policy!r} are sharded: shard all or none"
                )
        self._scaler = scaler

    @property
    def measuring(self) -> bool:
        """Whether the present step is measured."""
        return self._step % (self._every * self._factor) == 0 and bool(self._sums)

    def mark(self, role: str, slot: int = 0) -> None:
        """The backwards since the last mark were those of this group.

        Raises:
            ConfigError: For an unknown role.
            CaptureError: For a slot that the role does not have.
        """
        if not self.measuring:
            return
        index = self.workflow.index(role)
        count = self.registry.counts[index]
        place = slot if count > 1 else 0
        if not 0 <= place < count:
            raise CaptureError(f"role {role!r} has slots 0 to {count - 1}, got {slot}")
        group = self.registry.first[index] + place
        if self._scale is None:
            self._scale = loss_scale(self._scaler)
        self._counts[group] += 1
        begin = time.perf_counter()
        for sums in self._sums:
            now = sums.now()
            sums.groups[group] += now - sums.before
            sums.before = now
        self._seconds += time.perf_counter() - begin

    def drain_gradients(self) -> Sequence[GramRecord]:
        """Inner products of the step that ends, one record per policy; empty if not measured."""
        measured, records = self.measuring, []
        if measured:
            counts = self._counts.double()
            if rank_count() > 1:
                counts = counts.to(self._sums[0].groups.device)
                distributed.all_reduce(counts)
            scale = 1.0 if self._scale is None else float(self._scale)
            seen = [index for index, count in enumerate(counts.tolist()) if count]
            records = [self._record(sums, seen, scale) for sums in self._sums]
            for sums in self._sums:
                sums.groups.zero_()
                sums.before.zero_()
            self._counts.zero_()
            self._scale = None
        self._step += 1
        return [record for record in records if record is not None]

    def stretch(self, factor: int) -> None:
        """Measure ``factor`` times more rarely than ``every`` says, from the next step on."""
        self._factor = factor

    def cost_ms(self) -> float:
        """What :meth:`mark` took since the last call."""
        spent, self._seconds = self._seconds, 0.0
        return spent * 1e3

    def faults(self) -> dict[str, int]:
        """What went wrong since the last call, with how often."""
        faults, self._faults = dict(self._faults), Counter()
        return faults

    def _record(self, sums: _Sums, seen: list[int], scale: float) -> GramRecord | None:
        products = self._products(sums) / scale**2
        # Marks are not told which policy a backward reached: another policy's group is all zero.
        seen = [index for index in seen if self._is_own(sums, index) or products[index, index] != 0]
        if not seen:
            return None
        if self._scale is not None and not bool(products.isfinite().all()):
            self._faults["role gradients: overflow, the scaler skips this step"] += 1
            return None
        return GramRecord(
            policy=sums.policy,
            labels=tuple(self.registry.labels[index] for index in seen),
            products=tuple(tuple(row) for row in products[seen][:, seen].tolist()),
            method="boundary",
            relative_error=fold_error(sums.size) if self._kind == "fold" else 0.0,
        )

    def _is_own(self, sums: _Sums, group: int) -> bool:
        role = self.registry.labels[group].partition("/")[0]
        return self.workflow.policy_of(role) == sums.policy

    def _products(self, sums: _Sums) -> Tensor:
        """``(G, G)`` on the host, of gradients averaged over ranks."""
        if not sums.sharded:
            # Gradients that are reduced already are the same on all ranks and keep their mean;
            # those that wait for the last micro-batch's reduction get it here.
            add_over_ranks([sums.groups])
            flat = sums.groups.double() / rank_count()
            return (flat @ flat.t()).cpu()
        # Each rank holds other entries of the reduced gradient: inner products add.
        flat = sums.groups.double()
        products = flat @ flat.t()
        if rank_count() > 1:
            distributed.all_reduce(products)
        return products.cpu()


def _is_sharded(value: Tensor) -> bool:
    return hasattr(value, "to_local")


def _local(value: Tensor) -> Tensor:
    if not _is_sharded(value):
        return value
    own: Tensor = value.to_local()  # type: ignore[attr-defined]
    return own
