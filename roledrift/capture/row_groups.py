"""Which group (role, slot, half of the problems) each row or token of a micro-batch is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roledrift.errors import CaptureError
from roledrift.workflow import Workflow

_MAX_RUNS_PER_GROUP = 4
"""Above this many runs per group, gathering rows is cheaper than a product per run."""

Labels = Tensor | NDArray[Any] | Sequence[Any]
Rows = tuple[tuple[float, ...], ...]


@dataclass(slots=True)
class Layout:
    """What has been learned of the model's activations.

    Attributes:
        batch_first: An activation had as many entries in front as there are rows, and another
            number behind. Only then does one with the same number of both mean rows first.
    """

    batch_first: bool = False


@dataclass(frozen=True, slots=True)
class GroupRegistry:
    """Groups in a fixed order, the same on every rank.

    Attributes:
        roles: Role names in the workflow's order.
        labels: ``role`` for a role with one slot, ``role/slot`` for each slot of the others.
        owners: Index into ``labels`` of each group. A slot of a role that is split by problem has
            two groups in a row, for even and odd problems; any other label has one.
        first: Index of each role's first group.
        counts: Number of labels of each role.
        parts: Groups of each label of a role: 2 if it is split by problem.
        layout: Learned from one micro-batch for the next.
    """

    roles: tuple[str, ...]
    labels: tuple[str, ...]
    owners: tuple[int, ...]
    first: tuple[int, ...]
    counts: tuple[int, ...]
    parts: tuple[int, ...]
    layout: Layout = field(default_factory=Layout, compare=False)

    @classmethod
    def of(cls, workflow: Workflow, *, slots: bool = True, halves: bool = False) -> GroupRegistry:
        """Groups of ``workflow``.

        Args:
            workflow: Roles and slots.
            slots: One label per slot; False makes one label per role.
            halves: Split each slot of the roles with several slots by problem.
        """
        counts = tuple(role.slots if slots else 1 for role in workflow.roles)
        parts = tuple(2 if halves and count > 1 else 1 for count in counts)
        sizes = [count * part for count, part in zip(counts, parts, strict=True)]
        first = tuple(sum(sizes[:i]) for i in range(len(sizes)))
        labels: list[str] = []
        owners: list[int] = []
        for name, count, part in zip(workflow.role_names, counts, parts, strict=True):
            owners += [len(labels) + i // part for i in range(count * part)]
            labels += [name] if count == 1 else [f"{name}/{slot}" for slot in range(count)]
        return cls(workflow.role_names, tuple(labels), tuple(owners), first, counts, parts)

    def of_labels(self, products_GG: Tensor, seen: Sequence[int]) -> tuple[tuple[str, ...], Rows]:
        """Labels of the groups seen, and the inner products of the labels' gradients.

        Gradients add, so those of a slot are sums over the inner products of its halves.
        """
        owners = [self.owners[index] for index in seen]
        distinct = list(dict.fromkeys(owners))
        member_LS = torch.tensor([[owner == label for owner in owners] for label in distinct])
        member_LS = member_LS.to(products_GG.dtype)
        columns = list(seen)
        sums_LL = member_LS @ products_GG[columns][:, columns] @ member_LS.t()
        return tuple(self.labels[owner] for owner in distinct), _rows(sums_LL)

    def halves(self, products_GG: Tensor, seen: Sequence[int]) -> dict[str, Rows]:
        """Inner products between all parts of each role that is split by problem and seen whole."""
        pairs = {}
        for role, first, count, part in zip(
            self.roles, self.first, self.counts, self.parts, strict=True
        ):
            columns = list(range(first, first + count * part))
            if part > 1 and set(columns) <= set(seen):
                pairs[role] = _rows(products_GG[columns][:, columns])
        return pairs

    def rows(
        self, role: Labels, slot: Labels | None = None, *, prompt: Labels | None = None
    ) -> RowGroups:
        """Groups of a micro-batch.

        Args:
            role: Registry indices of roles, or role names: ``(B,)`` one per sequence, or ``(B, T)``
                one per token for rows that hold several packed sequences. A tensor on an
                accelerator stays there. An index outside the registry is an unknown role.
            slot: Slots, of the same shape; needed where a role has more than one. A row whose slot
                its role does not have belongs to no group.
            prompt: Numbers of the problems, of the same shape; needed where a role is split by
                problem. Even numbers are one half, odd ones the other: the same problem must have
                the same number in every slot and on every rank.

        Raises:
            CaptureError: If shapes do not fit, or slots or problems are missing.
        """
        role_index = self._indices(role)
        if slot is None and max(self.counts) > 1:
            raise CaptureError(
                f"role groups {list(self.labels)} have slots but no slot was given: pass slot, or "
                "build the probe with slots=False"
            )
        if prompt is None and max(self.parts) > 1:
            raise CaptureError(
                "gradients are split by problem but no problem was given: pass prompt, or build "
                "the probe with halves=False"
            )
        zeros = torch.zeros_like(role_index)
        slot_index, prompt_index = (
            zeros if index is None else _as_index(index).to(role_index.device)
            for index in (slot, prompt)
        )
        shapes = [tuple(index.shape) for index in (role_index, slot_index, prompt_index)]
        if len(set(shapes)) > 1 or role_index.dim() not in (1, 2):
            raise CaptureError(
                f"role, slot and prompt need one shape, (B,) or (B, T); got {shapes[0]}, "
                f"{shapes[1]} and {shapes[2]}"
            )
        return self._resolve(role_index, slot_index, prompt_index % 2)

    def _indices(self, role: Labels) -> Tensor:
        if isinstance(role, Tensor) or not len(role) or not isinstance(role[0], str):
            return _as_index(role)
        places = {name: index for index, name in enumerate(self.roles)}
        return torch.tensor([places.get(name, -1) for name in role], dtype=torch.long)

    def _resolve(self, role_index: Tensor, slot_index: Tensor, half: Tensor) -> RowGroups:
        device = role_index.device
        known = (role_index >= 0) & (role_index < len(self.roles))
        safe = torch.where(known, role_index, 0)
        counts = torch.tensor(self.counts, device=device)[safe]
        # A role with a single group takes every slot: there is nothing to tell apart.
        wanted = torch.where(counts > 1, slot_index, 0)
        fits = (wanted >= 0) & (wanted < counts)
        parts = torch.tensor(self.parts, device=device)[safe]
        place = wanted * parts + half % parts
        group = torch.tensor(self.first, device=device)[safe] + place
        group = torch.where(known & fits, group, len(self.owners))
        strange = torch.stack([(~known).any(), (known & ~fits).any()])
        return RowGroups(group, len(self.owners), strange, self.layout)


def _rows(matrix: Tensor) -> Rows:
    return tuple(tuple(row) for row in matrix.tolist())


def _as_index(values: Labels) -> Tensor:
    if isinstance(values, Tensor):
        if values.is_floating_point() or values.dtype == torch.bool:
            raise CaptureError(f"roles and slots are whole numbers, got {values.dtype}")
        return values.detach().long()
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise CaptureError(f"roles and slots are whole numbers or role names, got {array.dtype}")
    return torch.from_numpy(array.astype(np.int64))


@dataclass(frozen=True, slots=True)
class Pieces:
    """Tokens of one group: runs ``[start, stop)``, or positions where runs would be many."""

    group: int
    runs: tuple[tuple[int, int], ...]
    positions: Tensor | None = None


class RowGroups:
    """Labels of one micro-batch and how a flattened activation is cut by them.

    Args:
        group: ``(B,)`` or ``(B, T)``; a group index, or ``n_groups`` for an unknown role.
        n_groups: Groups in the registry.
        strange: Two booleans: an unknown role, a slot outside the role's slots.
        layout: What is known of the model's activations.
    """

    def __init__(
        self, group: Tensor, n_groups: int, strange: Tensor, layout: Layout | None = None
    ) -> None:
        self.group = group
        self._layout = layout or Layout()
        self.n_groups = n_groups
        self.strange = strange
        self.on_host = group.device.type == "cpu"
        self._tokens_per_row: int | None = None
        self._cuts: dict[int, tuple[Pieces, ...]] = {}
        self._masks: dict[tuple[int, torch.dtype], Tensor] = {}

    def tokens(self, shape: torch.Size) -> int | None:
        """Number of tokens in an activation of ``shape``; None if the labels do not fit it.

        A flattened activation ``(N, d)`` fits if its tokens can be told apart: N is the number of
        tokens that an unflattened one had before.
        """
        rows = self.group.shape
        n_tokens = shape[:-1].numel()
        if len(shape) >= 3 and shape[: len(rows)] == rows:
            if len(rows) == 1:
                # With as many tokens as rows the shape does not say which of the two comes first.
                if shape[1] != rows[0]:
                    self._layout.batch_first = True
                elif rows[0] > 1 and not self._layout.batch_first:
                    return None
                self._tokens_per_row = n_tokens // max(rows[0], 1)
            return n_tokens if len(rows) == 1 or len(shape) == 3 else None
        if len(shape) != 2:
            return None
        if len(rows) == 2:
            return n_tokens if n_tokens == rows.numel() else None
        return n_tokens if n_tokens in (rows[0], rows[0] * (self._tokens_per_row or 1)) else None

    def cut(self, n_tokens: int) -> tuple[Pieces, ...]:
        """Tokens of each group present, unknown roles last as group ``n_groups`` (host labels)."""
        if n_tokens not in self._cuts:
            self._cuts[n_tokens] = self._cut(n_tokens)
        return self._cuts[n_tokens]

    def _cut(self, n_tokens: int) -> tuple[Pieces, ...]:
        flat = self.group.reshape(-1).numpy()
        width = n_tokens // max(flat.size, 1)
        edges = np.flatnonzero(np.diff(flat)) + 1
        starts = np.concatenate([[0], edges]) if flat.size else np.zeros(0, dtype=np.int64)
        stops = np.concatenate([edges, [flat.size]]) if flat.size else starts
        runs: dict[int, list[tuple[int, int]]] = {}
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            runs.setdefault(int(flat[start]), []).append((start * width, stop * width))
        pieces = []
        for group, group_runs in sorted(runs.items()):
            many = len(group_runs) > _MAX_RUNS_PER_GROUP
            spots = [torch.arange(start, stop) for start, stop in group_runs] if many else []
            pieces.append(Pieces(group, tuple(group_runs), torch.cat(spots) if many else None))
        return tuple(pieces)

    def mask(self, n_tokens: int, dtype: torch.dtype) -> Tensor:
        """``(n_tokens, n_groups + 1)`` of zeros and ones, unknown roles last (device labels)."""
        key = (n_tokens, dtype)
        if key not in self._masks:
            flat = self.group.reshape(-1)
            per_row = n_tokens // max(flat.numel(), 1)
            spread = flat.repeat_interleave(per_row, output_size=n_tokens)
            groups = torch.arange(self.n_groups + 1, device=flat.device)
            self._masks[key] = (spread[:, None] == groups).to(dtype)
        return self._masks[key]

    def counts(self) -> Tensor:
        """``(n_groups,)`` how often each group occurs, on the device of the labels."""
        groups = torch.arange(self.n_groups, device=self.group.device)
        return (self.group.reshape(-1, 1) == groups).sum(0)
