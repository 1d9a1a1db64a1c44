"""Token tensors to span rows: sums over tokens on the device, one copy to the host per step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roledrift.capture.batch import BEHIND, TOKEN_COLUMNS, WHOLE_COLUMNS, RoleBatch
from roledrift.errors import CaptureError
from roledrift.spans import Comparison, Ints, Kind, SpanTable, concat
from roledrift.workflow import Workflow

UNKNOWN_ROLE = "unknown role"
NOT_FINITE = "non-finite log-prob"

_CLAMP = 20.0
"""Bound on ``|d|`` inside ``rho = exp(d)``: what the paper's code uses."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """How a comparison came about; part of what makes two batches alike."""

    kind: Kind
    temperature_a: float | None
    temperature_b: float | None
    steps_between: int | None


@dataclass(frozen=True, slots=True)
class _Layout:
    """Names of the columns of a packed batch: whole numbers first, then real ones."""

    whole: tuple[str, ...]
    real: tuple[str, ...]
    pairs: tuple[_Pair, ...]
    double: bool
    with_text: bool


@dataclass(frozen=True, slots=True)
class _Held:
    """One reduced batch on the device: ``(B, K)`` int64; real columns are carried bit by bit."""

    layout: _Layout
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
            self._held.append(_reduce(batch))

    def drain(self) -> list[SpanTable]:
        """Everything added since the last call, one table per set of columns.

        Rows of unknown role are left out and counted in :meth:`faults`.
        """
        held, self._held = self._held, []
        tables: dict[_Layout, list[SpanTable]] = {}
        for one, packed_BK in zip(held, to_host([one.packed_BK for one in held]), strict=True):
            table = replace(_table(self._roles, one, packed_BK), slots=self._slots)
            tables.setdefault(one.layout, []).append(table)
        stacked = [self._known(concat(parts)) for parts in tables.values()]
        return [table for table in stacked if len(table)]

    def faults(self) -> dict[str, int]:
        """Rows of unknown role and trainable tokens that were not finite, since the last call."""
        faults, self._faults = self._faults, Counter()
        return dict(faults)

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
    for index, one in enumerate(packed):
        places.setdefault(one.device, []).append(index)
    arrays: dict[int, Ints] = {}
    for indices in places.values():
        flat: Ints = torch.cat([packed[index].reshape(-1) for index in indices]).cpu().numpy()
        begin = 0
        for index in indices:
            end = begin + packed[index].numel()
            arrays[index] = flat[begin:end].reshape(packed[index].shape)
            begin = end
    return [arrays[index] for index in range(len(packed))]


def _reduce(batch: RoleBatch) -> _Held:
    # Metal has no float64; its rows are summed in float32 and added up in float64 on the host.
    real_type = torch.float32 if batch.mask_BT.device.type == "mps" else torch.float64
    mask_BT = batch.mask_BT != 0
    whole: dict[str, Tensor] = {"role_N": batch.role_B}
    real: dict[str, Tensor] = {}
    for name in WHOLE_COLUMNS:
        column = getattr(batch, name)
        if column is not None:
            whole[name.replace("_B", "_N")] = column
    if batch.outputs:
        _outputs(batch, mask_BT, real_type, whole, real)
    tokens = {
        name: getattr(batch, name).to(real_type)
        for name in TOKEN_COLUMNS
        if getattr(batch, name) is not None
    }
    finite = {name: value_BT.isfinite() for name, value_BT in tokens.items()}
    if tokens:
        broken_BT = ~torch.stack(list(finite.values())).all(0)
        whole["nonfinite_N"] = (mask_BT & broken_BT).sum(1)
    if batch.before_logp_BT is None:
        _scores(batch, mask_BT, tokens, whole, real)
    pairs = []
    for kind, name in BEHIND.items():
        if name in tokens:
            both_BT = mask_BT & finite["logp_BT"] & finite[name]
            _compare(kind, both_BT, (tokens["logp_BT"], tokens[name]), whole, real)
            pairs.append(_pair(batch, kind))
    layout = _Layout(
        tuple(whole), tuple(real), tuple(pairs), real_type == torch.float64, batch.text is not None
    )
    return _Held(layout, _pack(whole, real, real_type), batch.text)


def _outputs(
    batch: RoleBatch,
    mask_BT: Tensor,
    real_type: torch.dtype,
    whole: dict[str, Tensor],
    real: dict[str, Tensor],
) -> None:
    whole["tokens_N"] = mask_BT.sum(1)
    if batch.truncated_B is not None:
        whole["truncated_N"] = batch.truncated_B
    if batch.reward_B is not None:
        real["reward_N"] = batch.reward_B
    if batch.advantage_B is not None and batch.advantage_B.ndim == 1:
        real["advantage_N"] = batch.advantage_B
    elif batch.advantage_B is not None:
        total_B = _sum(mask_BT, batch.advantage_B.to(real_type))
        real["advantage_N"] = total_B / mask_BT.sum(1).clamp(min=1)


def _scores(
    batch: RoleBatch,
    mask_BT: Tensor,
    tokens: dict[str, Tensor],
    whole: dict[str, Tensor],
    real: dict[str, Tensor],
) -> None:
    """Sums of ``-log p`` and entropy, and the number of tokens whose clipped loss was active.

    With the ratio ``r = exp(logp - old)`` the clipped loss ``-A clip(r, 1 - low, 1 + high)`` is
    strictly larger than ``-A r`` just where ``A > 0`` and ``r > 1 + high``, or ``A < 0`` and
    ``r < 1 - low``.
    """
    scored_BT = mask_BT
    for name in ("logp_BT", "entropy_BT"):
        if name in tokens:
            scored_BT = scored_BT & tokens[name].isfinite()
    if scored_BT is mask_BT:
        return
    whole["scored_N"] = scored_BT.sum(1)
    if "logp_BT" in tokens:
        real["nll_N"] = -_sum(scored_BT, tokens["logp_BT"])
    if "entropy_BT" in tokens:
        real["entropy_N"] = _sum(scored_BT, tokens["entropy_BT"])
    if batch.clip is None or batch.advantage_B is None or "old_logp_BT" not in tokens:
        return
    low, high = batch.clip
    ratio_BT = (tokens["logp_BT"] - tokens["old_logp_BT"]).exp()
    advantage = batch.advantage_B if batch.advantage_B.ndim == 2 else batch.advantage_B[:, None]
    active_BT = (advantage > 0) & (ratio_BT > 1 + high) | (advantage < 0) & (ratio_BT < 1 - low)
    whole["clipped_N"] = (scored_BT & active_BT).sum(1)


def _compare(
    kind: Kind,
    both_BT: Tensor,
    logps: tuple[Tensor, Tensor],
    whole: dict[str, Tensor],
    real: dict[str, Tensor],
) -> None:
    """The sums of a :class:`roledrift.spans.Comparison`.

    ``d`` is clamped only inside ``rho``; ``k3`` takes it as it is, as the paper's code does, and is
    infinite beyond ``d`` = 709 (88 in float32), which no two versions of one policy reach.
    """
    zero = logps[0].new_zeros(())
    a_BT, b_BT = (torch.where(both_BT, logp_BT, zero) for logp_BT in logps)
    d_BT = a_BT - b_BT
    whole[f"{kind}.tokens_N"] = both_BT.sum(1)
    real[f"{kind}.a_N"] = a_BT.sum(1)
    real[f"{kind}.b_N"] = b_BT.sum(1)
    # expm1 keeps the digits that exp(x) - 1 loses for the tiny x of a healthy run, and is 0 at 0.
    real[f"{kind}.chi2_N"] = torch.expm1(2 * d_BT.clamp(-_CLAMP, _CLAMP)).sum(1)
    real[f"{kind}.k3_N"] = (torch.expm1(d_BT) - d_BT).sum(1)
    real[f"{kind}.peak_N"] = d_BT.abs().amax(1)


def _pair(batch: RoleBatch, kind: Kind) -> _Pair:
    rollout = kind == "rollout"
    behind = batch.rollout_temperature if rollout else batch.temperature
    steps = None if kind == "reference" else batch.steps_between
    return _Pair(kind, batch.temperature, behind, steps)


def _sum(keep_BT: Tensor, value_BT: Tensor) -> Tensor:
    # Selecting, not multiplying: 0 * NaN of a masked position would be NaN.
    return torch.where(keep_BT, value_BT, value_BT.new_zeros(())).sum(1)


def _pack(whole: dict[str, Tensor], real: dict[str, Tensor], real_type: torch.dtype) -> Tensor:
    parts = [torch.stack([column_B.to(torch.int64) for column_B in whole.values()], dim=1)]
    if real:
        real_BK = torch.stack([column_B.to(real_type) for column_B in real.values()], dim=1)
        double = real_type == torch.float64
        parts.append(
            real_BK.view(torch.int64) if double else real_BK.view(torch.int32).to(torch.int64)
        )
    return torch.cat(parts, dim=1)


def _table(roles: tuple[str, ...], held: _Held, packed_BK: Ints) -> SpanTable:
    layout = held.layout
    columns: dict[str, NDArray[Any]] = {
        name: packed_BK[:, index].copy() for index, name in enumerate(layout.whole)
    }
    bits_BK = np.ascontiguousarray(packed_BK[:, len(layout.whole) :])
    real_BK = (
        bits_BK.view(np.float64)
        if layout.double
        else bits_BK.astype(np.int32).view(np.float32).astype(np.float64)
    )
    columns |= {name: real_BK[:, index].copy() for index, name in enumerate(layout.real)}
    if "truncated_N" in columns:
        columns["truncated_N"] = columns["truncated_N"] != 0
    comparisons = tuple(_comparison(pair, columns) for pair in layout.pairs)
    plain: dict[str, Any] = {name: value for name, value in columns.items() if "." not in name}
    return SpanTable(roles, **plain, comparisons=comparisons, text_N=held.text)


def _comparison(pair: _Pair, columns: dict[str, NDArray[Any]]) -> Comparison:
    prefix = f"{pair.kind}."
    sums = {name[len(prefix) :]: v for name, v in columns.items() if name.startswith(prefix)}
    return Comparison(
        pair.kind,
        **sums,
        temperature_a=pair.temperature_a,
        temperature_b=pair.temperature_b,
        steps_between=pair.steps_between,
    )
