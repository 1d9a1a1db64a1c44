"""Where the gradients of groups are kept until the optimizer step: in full, folded or sketched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, distributed

from roledrift.capture.fold import FoldStore
from roledrift.capture.gradient_sums import GradientSums

StoreKind = Literal["fold", "full", "sketch"]

SKETCH_SIDE = 16
"""Rows and columns of a sketched weight gradient."""


class FullStore(GradientSums):
    """Every entry of every group's gradient: exact."""

    def __init__(
        self,
        shapes: Sequence[tuple[int, int]],
        n_groups: int,
        *,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self._sums = [torch.zeros(n_groups + 1, *two, dtype=dtype, device=device) for two in shapes]

    def add(self, weight: int, group: int, product: Tensor) -> None:
        """Add a weight gradient ``(out, in)`` of a group."""
        self._sums[weight][group].add_(product)

    def group(self, index: int) -> list[Tensor]:
        """The gradient of one group, weight by weight."""
        return [buffer[index] for buffer in self._sums]

    def tensors(self) -> list[Tensor]:
        """The sums."""
        return self._sums

    def gram(self) -> Tensor:
        """``(G + 1, G + 1)`` inner products, float64."""
        total = torch.zeros(len(self._sums[0]), len(self._sums[0]), dtype=torch.float64)
        total = total.to(self._sums[0].device)
        for buffer in self._sums:
            flat = buffer.flatten(1).double()
            total += flat @ flat.t()
        return total


class SketchStore(GradientSums):
    """``P^T G Q`` of each weight gradient, from ``dY P`` and ``X Q``, without forming ``G``.

    P and Q hold random signs. Inner products are unbiased; for one weight the relative variance of
    a squared norm is at most (1 + 2/k)^2 - 1 with k = 16 (reached by gradients of rank one), and
    weights are independent.
    """

    def __init__(
        self,
        shapes: Sequence[tuple[int, int]],
        n_groups: int,
        *,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        side = SKETCH_SIDE
        self._sums = torch.zeros(n_groups + 1, len(shapes), side, side, dtype=dtype, device=device)
        # One table per side serves all weights: weight w reads it from row w on. The sides need
        # tables of their own, or P and Q of one weight would depend on each other.
        longest = max(max(two) for two in shapes) + len(shapes)
        source = torch.Generator(device="cpu").manual_seed(20_261)
        signs = torch.randint(0, 2, (2, longest, side), generator=source, dtype=torch.int8)
        self._p, self._q = signs.mul_(2).sub_(1).to(device)

    def project(self, weight: int, dy_ND: Tensor, x_ND: Tensor) -> tuple[Tensor, Tensor]:
        """``dY P`` and ``X Q``, each ``(N, 16)``."""
        p = self._p[weight : weight + dy_ND.shape[1]].to(dy_ND.dtype)
        q = self._q[weight : weight + x_ND.shape[1]].to(x_ND.dtype)
        return dy_ND @ p, x_ND @ q

    def add(self, weight: int, group: int, product: Tensor) -> None:
        """Add a sketched weight gradient ``(16, 16)`` of a group."""
        self._sums[group, weight].add_(product)

    def add_whole(self, weight: int, gradient: Tensor) -> None:
        """Sketch a weight's whole gradient."""
        n_out, n_in = gradient.shape
        p = self._p[weight : weight + n_out].to(gradient.dtype)
        q = self._q[weight : weight + n_in].to(gradient.dtype)
        self.add(weight, -1, p.t() @ (gradient @ q))

    def tensors(self) -> list[Tensor]:
        """The sums."""
        return [self._sums]

    def gram(self) -> Tensor:
        """``(G + 1, G + 1)`` inner products, float64."""
        flat = self._sums.flatten(1).double() / SKETCH_SIDE
        return flat @ flat.t()

    def relative_error(self) -> float:
        """Upper bound for a norm, from how the observed mass is spread over weights."""
        mass = self._sums.double().square().sum((2, 3))
        share = mass.square().sum(1).sqrt() / mass.sum(1)
        worst = float(share.nan_to_num(0.0).max())
        return 0.5 * math.sqrt((1 + 2 / SKETCH_SIDE) ** 2 - 1) * worst


def open_store(
    kind: StoreKind,
    shapes: Sequence[tuple[int, int]],
    n_groups: int,
    *,
    signs: Tensor | None,
    like: Tensor,
) -> GradientSums:
    """An empty store.

    Args:
        kind: Which one.
        shapes: ``(out, in)`` of each weight.
        n_groups: Groups.
        signs: From :func:`roledrift.capture.fold.fold_signs`; needed to fold.
        like: A weight of the policy: its device, and what its gradients are added in.
    """
    dtype, device = sum_dtype(like.dtype), like.device
    if kind == "fold" and signs is not None:
        return FoldStore(shapes, n_groups, signs=signs, dtype=dtype, device=device)
    make = FullStore if kind == "full" else SketchStore
    return make(shapes, n_groups, dtype=dtype, device=device)


def sum_dtype(dtype: torch.dtype) -> torch.dtype:
    """What gradients of weights of ``dtype`` are added in."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def rank_count() -> int:
    """Processes that train together."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return 1
    return distributed.get_world_size()


def add_over_ranks(tensors: Sequence[Tensor]) -> None:
    """Sum over ranks, in place. All ranks call it for the same tensors in the same order."""
    if rank_count() > 1:
        for tensor in tensors:
            distributed.all_reduce(tensor)


def loss_scale(scaler: Any) -> Tensor | None:
    """The present scale of a ``torch.amp.GradScaler``, on its device; None if there is none.

    The scaler makes its tensor at its first use and changes it in place after each step, hence the
    copy; before its first use asking it for the number waits for no device.
    """
    if scaler is None or not scaler.is_enabled():
        return None
    scale = getattr(scaler, "_scale", None)
    known: Tensor = torch.tensor(scaler.get_scale()) if scale is None else scale
    return known.detach().clone()
