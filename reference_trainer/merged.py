"""Training through merged weights: a layer is one product, and its adapter gets its gradients.

PEFT computes a layer as ``x W^T + s (x A^T) B^T``: three products, a sum, and autograd nodes for each.
Within a mini-batch none of the factors changes, so ``W + s B A`` is formed once and the forward is
``x (W + s B A)^T``. The gradients of the factors follow from the layer's input and the gradient of
its output, as in PEFT's own backward::

    dA = s (dy B)^T x        dB = s dy^T (x A^T)

The weight gradient ``dy^T x`` itself is never formed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class MergedLinear(nn.Module):
    """A linear layer with an adapter, while neither changes.

    Args:
        base: The frozen layer.
        a_RI: First factor of the adapter.
        b_OR: Second factor.
        scaling: What their product is multiplied by.
    """

    def __init__(self, base: nn.Linear, a_RI: Tensor, b_OR: Tensor, scaling: float) -> None:
        super().__init__()
        with torch.no_grad():
            self.weight_OI = torch.addmm(base.weight, b_OR, a_RI, alpha=scaling)
        self.bias_O = base.bias
        # Not registered: these are parameters of the layer that this one stands in for.
        self.factors = (a_RI, b_OR)
        self.scaling = scaling

    def forward(self, x: Tensor) -> Tensor:
        """As the layer with its adapter computes it, up to rounding."""
        if not torch.is_grad_enabled():
            return F.linear(x, self.weight_OI, self.bias_O)
        output: Tensor = _Merged.apply(x, self.weight_OI, self.bias_O, *self.factors, self.scaling)  # type: ignore[no-untyped-call]
        return output


class _Merged(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight_OI: Tensor, bias: Tensor | None, a: Tensor, b: Tensor, s: float
    ) -> Tensor:
        ctx.save_for_backward(x, weight_OI, a, b)
        ctx.scaling = s
        return F.linear(x, weight_OI, bias)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight_OI, a_RI, b_OR = ctx.saved_tensors
        dx = dy @ weight_OI if ctx.needs_input_grad[0] else None
        dy_NO, x_NI = dy.flatten(0, -2), x.flatten(0, -2)
        da_RI = ((dy_NO @ b_OR) * ctx.scaling).t() @ x_NI
        db_OR = dy_NO.t() @ ((x_NI @ a_RI.t()) * ctx.scaling)
        return dx, None, None, da_RI, db_OR, None
