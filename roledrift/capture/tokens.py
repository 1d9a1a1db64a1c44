"""Token tensors to span rows: sums over tokens on the device, one copy to the host per step."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roledrift.capture.batch import BEHIND, WHOLE_COLUMNS, RoleBatch
from roledrift.errors import CaptureError
from roledrift.spans import Comparison, Ints, Kind, Provenance, SpanTable, concat
from roledrift.sums import RATIO_BINS, RATIO_EDGES
from roledrift.workflow import Workflow

UNKNOWN_ROLE = "unknown role"
NOT_FINITE = "non-finite log-prob"

_CLAMP = 20.0
"""Bound on ``|d|`` inside ``rho = exp(d)``: what the paper's code uses."""

_STACKED = ("entropy_BT", "logp_BT", *BEHIND.values())
"""Order of the token columns while they are reduced: the log-probability, then what it is compared
with."""

_Reals = dict[tuple[str, ...], Tensor]
"""Real columns: the names of some of them, and they themselves, ``(names, B)``."""


@dataclass(frozen=True, slots=True)
class _PackedColumns:
    """Names of the columns of a packed batch: whole numbers, bins of each pair, real ones."""

    integers: tuple[str, ...]
    real: tuple[str, ...]
    pairs: tuple[tuple[Kind, Provenance], ...]
    double: bool
    with_text: bool


@dataclass(frozen=True, slots=True)
class _Held:
    """One reduced batch on the device: ``(B, K)`` int64; real columns are carried bit by bit."""

    layout: _PackedColumns
    packed_BK: Tensor
    text: tuple[str | None, ...] | None


class TokenCapture:
    """Collects batches of token tensors as span rows; a :class:`roledrift.protocols.SpanSource`.

    ``add`` launches reductions on the device and keeps only their ``(B, K)`` results: it waits for
    nothing, keeps no tensor of the trainer, records no autograd graph and draws no random number.
    ``drain`` waits once, for everything added since.

    Args:
        workflow: Names the roles.
    """

    def __init__(self, workflow: Workflow) -> None:
        self._roles = workflow.role_names
        self._slots = tuple(role.slots for role in workflow.roles)
        self._held: list[_Held] = []
        self._faults: Counter[str] = Counter()
        self._edges: dict[torch.device, Tensor] = {}

    def add(self, batch: RoleBatch) -> None:
        """Reduce a batch on its device.

        Args:
            batch: Spans of any roles, in any mixture.

        Raises:
            CaptureError: If the batch was made for other roles.
        """
        if batch.roles != self._roles:
            raise CaptureError(
                f"batch has the roles {list(batch.roles)}, this capture {list(self._roles)}: "
                "make both from one workflow"
            )
        with torch.no_grad():
            self._held.append(_reduce(batch, self._edges_on(batch.mask_BT.device)))

    def drain(self) -> list[SpanTable]:
        """Everything added since the last call, one table per set of columns.

        Rows of unknown role are left out and counted in :meth:`faults`.
        """
        held, self._held = self._held, []
        tables: dict[_PackedColumns, list[SpanTable]] = {}
        for item, packed_BK in zip(held, to_host([item.packed_BK for item in held]), strict=True):
            table = replace(_table(self._roles, item, packed_BK), slots=self._slots)
            tables.setdefault(item.layout, []).append(table)
        stacked = [self._known(concat(parts)) for parts in tables.values()]
        return [table for table in stacked if len(table)]

    def faults(self) -> dict[str, int]:
        """Rows of unknown role and trainable tokens that were not finite, since the last call."""
        faults, self._faults = self._faults, Counter()
        return dict(faults)

    def _edges_on(self, device: torch.device) -> Tensor:
        """Edges of the bins, in the type that sums are taken in; copied there once."""
        if device not in self._edges:
            # Metal has no float64; its rows are summed in float32, then in float64 on the host.
            real_type = torch.float32 if device.type == "mps" else torch.float64
            edges = [*(-edge for edge in reversed(RATIO_EDGES)), *RATIO_EDGES]
            edges_here = torch.tensor(edges, dtype=real_type).to(device, non_blocking=True)
            self._edges[device] = edges_here
        return self._edges[device]

    def _known(self, table: SpanTable) -> SpanTable:
        known_N = (table.role_N >= 0) & (table.role_N < len(self._roles))
        dropped = int(len(table) - known_N.sum())
        if dropped:
            self._faults[UNKNOWN_ROLE] += dropped
            table = table.select(known_N)
        broken = 0 if table.nonfinite_N is None else int(table.nonfinite_N.sum())
        if broken:
            self._faults[NOT_FINITE] += broken
        return table


def to_host(packed: list[Tensor]) -> list[Ints]:
    """Copy ``(B, K)`` int64 tensors to the host in one piece per device."""
    places: dict[torch.device, list[int]] = {}
    for index, tensor in enumerate(packed):
        places.setdefault(tensor.device, []).append(index)
    arrays: dict[int, Ints] = {}
    for indices in places.values():
        flat: Ints = torch.cat([packed[index].reshape(-1) for index in indices]).cpu().numpy()
        begin = 0
        for index in indices:
            end = begin + packed[index].numel()
            arrays[index] = flat[begin:end].reshape(packed[index].shape)
            begin = end
    return [arrays[index] for index in range(len(packed))]


def _reduce(batch: RoleBatch, edges: Tensor) -> _Held:
    """Everything there is to know about a batch, one row per span.

    The token columns are stacked and reduced together: on small batches an operation costs its
    launch, and this way their number does not grow with the number of comparisons.
    """
    mask_BT = batch.mask_BT if batch.mask_BT.dtype == torch.bool else batch.mask_BT != 0
    integers: dict[str, Tensor] = {"role_N": batch.role_B}
    real: _Reals = {}
    for name in WHOLE_COLUMNS:
        column = getattr(batch, name)
        if column is not None:
            integers[name.replace("_B", "_N")] = column
    if batch.outputs:
        _outputs(batch, mask_BT, edges.dtype, integers, real)
    names = [name for name in _STACKED if getattr(batch, name) is not None]
    kinds = [kind for kind, name in BEHIND.items() if name in names]
    bins_PBR = None
    if names:
        # Converted one by one: a trainer may keep each column in another float type.
        values_CBT = torch.stack([getattr(batch, name).to(edges.dtype) for name in names])
        finite_CBT = values_CBT.isfinite()
        integers["nonfinite_N"] = (mask_BT & ~finite_CBT.all(0)).sum(1)
        own = len(names) - len(kinds)
        if batch.before_logp_BT is None:
            scored_BT = mask_BT & finite_CBT[:own].all(0)
            _scores(names[:own], scored_BT, values_CBT[:own], integers, real)
            if batch.clip is not None and batch.advantage_B is not None and "old" in kinds:
                d_BT = values_CBT[own - 1] - values_CBT[own + kinds.index("old")]
                integers["clipped_N"] = (scored_BT & _clipped(batch, d_BT)).sum(1)
        if kinds:
            both_PBT = mask_BT & finite_CBT[own - 1] & finite_CBT[own:]
            bins_PBR = _compare(kinds, both_PBT, values_CBT[own - 1 :], edges, real)
    layout = _PackedColumns(
        tuple(integers),
        tuple(name for names in real for name in names),
        tuple(_pair(batch, kind) for kind in kinds),
        edges.dtype == torch.float64,
        batch.text is not None,
    )
    return _Held(layout, _pack(integers, bins_PBR, real, edges.dtype), batch.text)


def _outputs(
    batch: RoleBatch,
    mask_BT: Tensor,
    real_type: torch.dtype,
    integers: dict[str, Tensor],
    real: _Reals,
) -> None:
    integers["tokens_N"] = mask_BT.sum(1)
    if batch.truncated_B is not None:
        integers["truncated_N"] = batch.truncated_B
    if batch.reward_B is not None:
        real[("reward_N",)] = batch.reward_B[None]
    if batch.advantage_B is not None and batch.advantage_B.ndim == 1:
        real[("advantage_N",)] = batch.advantage_B[None]
    elif batch.advantage_B is not None:
        total_B = batch.advantage_B.to(real_type).masked_fill(~mask_BT, 0).sum(1)
        real[("advantage_N",)] = (total_B / mask_BT.sum(1).clamp(min=1))[None]


def _scores(
    names: list[str],
    scored_BT: Tensor,
    values_CBT: Tensor,
    integers: dict[str, Tensor],
    real: _Reals,
) -> None:
    """Sums of ``-log p`` and entropy over the tokens at which all that is there is finite."""
    integers["scored_N"] = scored_BT.sum(1)
    # Filling, not multiplying: 0 * NaN of a masked position would be NaN.
    total_CB = values_CBT.masked_fill(~scored_BT, 0).sum(2)
    if "entropy_BT" in names:
        real[("entropy_N",)] = total_CB[:1]
    if "logp_BT" in names:
        real[("nll_N",)] = -total_CB[-1:]


def _clipped(batch: RoleBatch, d_BT: Tensor) -> Tensor:
    """Where the clipped loss is active.

    With the ratio ``r = exp(d)`` the clipped loss ``-A clip(r, 1 - low, 1 + high)`` is strictly
    larger than ``-A r`` just where ``A > 0`` and ``r > 1 + high``, or ``A < 0`` and
    ``r < 1 - low``.
    """
    assert batch.clip is not None
    assert batch.advantage_B is not None
    low, high = batch.clip
    advantage = batch.advantage_B if batch.advantage_B.ndim == 2 else batch.advantage_B[:, None]
    below = math.log1p(-low) if low < 1 else -math.inf
    return torch.where(advantage > 0, d_BT > math.log1p(high), (advantage < 0) & (d_BT < below))


def _compare(
    kinds: list[Kind], both_PBT: Tensor, logps_CBT: Tensor, edges: Tensor, real: _Reals
) -> Tensor:
    """The sums of a :class:`roledrift.spans.Comparison` for each kind, and its bins.

    ``d`` is clamped only inside ``rho``; ``k3`` takes it as it is, as the paper's code does, and is
    infinite beyond ``d`` = 709 (88 in float32), which no two versions of one policy reach.

    Returns:
        Tokens per bin of ``d``, ``(P, B, RATIO_BINS + 1)`` int32; what is masked is in the last.
    """
    off_PBT = ~both_PBT
    d_PBT = (logps_CBT[0] - logps_CBT[1:]).masked_fill(off_PBT, 0)
    sums = {
        "tokens_N": both_PBT.sum(2),
        "a_N": logps_CBT[0].masked_fill(off_PBT, 0).sum(2),
        "b_N": logps_CBT[1:].masked_fill(off_PBT, 0).sum(2),
        # expm1 keeps the digits that exp(x) - 1 loses for the tiny x of a healthy run.
        "chi2_N": (d_PBT.clamp(-_CLAMP, _CLAMP) * 2).expm1_().sum(2),
        "k3_N": d_PBT.expm1().sub_(d_PBT).sum(2),
        "low_N": d_PBT.masked_fill(off_PBT, math.inf).amin(2),
        "high_N": d_PBT.masked_fill(off_PBT, -math.inf).amax(2),
    }
    for name, sum_PB in sums.items():
        real[tuple(f"{kind}.{name}" for kind in kinds)] = sum_PB
    bin_PBT = torch.bucketize(d_PBT, edges).masked_fill_(off_PBT, RATIO_BINS)
    ones_PBT = torch.ones((), dtype=torch.int32, device=d_PBT.device).expand(d_PBT.shape)
    none_PBR = ones_PBT.new_zeros((*d_PBT.shape[:2], RATIO_BINS + 1))
    return none_PBR.scatter_add_(2, bin_PBT, ones_PBT)


def _pair(batch: RoleBatch, kind: Kind) -> tuple[Kind, Provenance]:
    """A comparison and how it came about: part of what makes two batches alike."""
    rollout = kind == "rollout"
    behind = batch.rollout_temperature if rollout else batch.temperature
    steps = None if kind == "reference" else batch.steps_between
    return kind, Provenance(batch.temperature, behind, steps)


def _pack(
    integers: dict[str, Tensor], bins_PBR: Tensor | None, real: _Reals, real_type: torch.dtype
) -> Tensor:
    parts = [torch.stack([column_B.to(torch.int64) for column_B in integers.values()], dim=1)]
    if bins_PBR is not None:
        # Two counts in one whole number.
        parts += bins_PBR.view(torch.int64).unbind(0)
    if real:
        real_BK = torch.cat([column_KB.to(real_type) for column_KB in real.values()]).T.contiguous()
        double = real_type == torch.float64
        parts.append(
            real_BK.view(torch.int64) if double else real_BK.view(torch.int32).to(torch.int64)
        )
    return torch.cat(parts, dim=1)


def _table(roles: tuple[str, ...], held: _Held, packed_BK: Ints) -> SpanTable:
    layout = held.layout
    columns: dict[str, NDArray[Any]] = {
        name: packed_BK[:, index].copy() for index, name in enumerate(layout.integers)
    }
    first, count = len(layout.integers), (RATIO_BINS + 1) // 2
    for number, (kind, _) in enumerate(layout.pairs):
        begin = first + number * count
        two_BK = np.ascontiguousarray(packed_BK[:, begin : begin + count])
        bins_BR = two_BK.view(np.int32)[:, :RATIO_BINS]
        columns[f"{kind}.bins_N"] = bins_BR.astype(np.int64)
    bits_BK = np.ascontiguousarray(packed_BK[:, first + len(layout.pairs) * count :])
    real_BK = (
        bits_BK.view(np.float64)
        if layout.double
        else bits_BK.astype(np.int32).view(np.float32).astype(np.float64)
    )
    columns |= {name: real_BK[:, index].copy() for index, name in enumerate(layout.real)}
    if "truncated_N" in columns:
        columns["truncated_N"] = columns["truncated_N"] != 0
    comparisons = tuple(_comparison(*pair, columns) for pair in layout.pairs)
    plain: dict[str, Any] = {name: value for name, value in columns.items() if "." not in name}
    return SpanTable(roles, **plain, comparisons=comparisons, text_N=held.text)


def _comparison(kind: Kind, source: Provenance, columns: dict[str, NDArray[Any]]) -> Comparison:
    prefix = f"{kind}."
    sums = {name[len(prefix) :]: v for name, v in columns.items() if name.startswith(prefix)}
    sums["tokens_N"] = sums["tokens_N"].astype(np.int64)
    peak_N = np.maximum(np.maximum(sums["high_N"], -sums["low_N"]), 0.0)
    known: dict[str, Any] = {**sums, "peak_N": peak_N, **source._asdict()}
    return Comparison(kind, **known)
