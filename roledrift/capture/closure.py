"""Does a record of role gradients add up to the gradient that the optimizer gets?

A tap sees what passes through its layer. A fused kernel that reads the weight, a second use of a
tied weight, a compiled graph or a copy of the model passes it by, and nothing in the taps shows
that. So a hook on every trained parameter adds up the gradients as autograd delivers them, before
clipping and in the steps that are measured only:

* *closure* is ``|sum of the groups - gradient| / max(|gradient|, sqrt(sum |group|^2))``. A record
  above :data:`LARGEST_GAP` is refused.
* *coverage* is ``|gradient of the tapped weights| / |gradient of all trained parameters|``: a share
  of the norm. Weights whose gradient arrived without passing their tap count as not covered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from roledrift.capture.fold import fold_into, fold_signs
from roledrift.capture.gradient_store import sum_dtype
from roledrift.capture.linear_taps import Accumulator, quiet

LARGEST_GAP = 0.02
"""Rounding stays far below: 1e-6 in float32, 4e-3 in bfloat16; a bypassed layer far above."""
LEAST_COVERED = 0.5
"""Shares and cosines of less than this part of the gradient's norm would be those of something
else."""
NO_LAYER = "no layer was called: the model has been compiled, or runs in fused kernels"
_WIDTH = 4093
"""Places that the gradients without a tap are folded into; 1.1 % error of their norm."""


class Closure:
    """What autograd delivers to the parameters of one policy, beside what its taps see."""

    def __init__(self, ledger: Accumulator, like: Tensor) -> None:
        self.ledger = ledger
        self.arrived = 0
        dtype = sum_dtype(like.dtype)
        self._signs = fold_signs(_WIDTH).to(device=like.device, dtype=dtype)
        self._rest = torch.zeros(_WIDTH, dtype=dtype, device=like.device)
        self._bypassed: set[int] = set()

    def tensors(self) -> list[Tensor]:
        """What must be added over ranks."""
        return [self._rest]

    def receive(self, weight: int | None, start: int, gradient: Tensor) -> None:
        """Add one parameter's gradient of one backward pass.

        Args:
            weight: Index of the tapped weight; None for a parameter without a tap.
            start: Place of its first number among all trained parameters.
            gradient: Before it is added to ``.grad``.
        """
        ledger = self.ledger
        try:
            with quiet(gradient.device.type):
                if weight is not None and weight in ledger.tapped and ledger.store is not None:
                    self.arrived += 1
                    ledger.tapped.discard(weight)
                    ledger.store.add_whole(weight, gradient)
                    return
                if weight is not None:
                    self._bypassed.add(weight)
                fold_into(self._rest, self._signs, gradient.to(self._rest.device), start)
        except RuntimeError:
            # torch's own errors, out of memory among them: a hook must not end a training run.
            ledger.misfits += 1

    def bypassed(self) -> Tensor:
        """``(weights,)`` ones where a gradient has arrived that passed the tap by."""
        flags = torch.zeros(len(self.ledger.names))
        flags[sorted(self._bypassed)] = 1
        return flags

    def judge(self, products: Tensor, bypassed: Sequence[str]) -> Closing:
        """Compare what the groups add up to with what arrived.

        Args:
            products: ``(G + 1, G + 1)`` inner products, the whole gradient last, on the host.
            bypassed: Names of the layers that were passed by, on any rank.
        """
        parts, cross, norm2 = products[:-1, :-1], products[:-1, -1], float(products[-1, -1])
        gap = math.sqrt(max(float(parts.sum() - 2 * cross.sum()) + norm2, 0.0))
        scale = math.sqrt(max(norm2, float(parts.diagonal().sum())))
        rest = float(self._rest.double().square().sum())
        if not math.isfinite(scale) or not math.isfinite(rest):
            return Closing(bypassed=tuple(bypassed))
        return Closing(
            gap=gap / scale if scale else 0.0,
            covered=math.sqrt(norm2 / (norm2 + rest)) if norm2 + rest else None,
            bypassed=tuple(bypassed) if rest else (),
        )

    def clear(self) -> None:
        """Forget the step."""
        self.arrived = 0
        self._rest.zero_()
        self._bypassed.clear()


@dataclass(frozen=True, slots=True)
class Closing:
    """Whether a record adds up.

    Attributes:
        gap: What is missing between the groups' sum and the gradient; None if not checked.
        covered: Share of the norm of the policy's whole gradient; None if not known.
        bypassed: Layers whose gradient did not pass their tap.
        untouched: No layer was tapped at all.
    """

    gap: float | None = None
    covered: float | None = None
    bypassed: tuple[str, ...] = ()
    untouched: bool = False

    @property
    def refusal(self) -> str:
        """Why these numbers are none; empty if they are."""
        if self.untouched:
            return NO_LAYER
        layers = _named(self.bypassed)
        if self.gap is not None and self.gap > LARGEST_GAP:
            return "the parts do not add up to .grad" + layers
        if self.covered is not None and self.covered < LEAST_COVERED:
            return "less than half of the gradient's norm is covered" + layers
        return ""

    @property
    def numbers(self) -> str:
        """Gap and covered share for people."""
        gap = "not checked" if self.gap is None else f"{self.gap:.1%}"
        covered = "not known" if self.covered is None else f"{self.covered:.1%}"
        return f"missing {gap}, covered {covered} of the gradient's norm"


def _named(layers: Sequence[str]) -> str:
    if not layers:
        return ""
    more = f" and {len(layers) - 3} more" if len(layers) > 3 else ""
    return f"; weights used past their layer: {', '.join(layers[:3])}{more}"
