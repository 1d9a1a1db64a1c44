"""What keeps the gradients of groups until the optimizer step.

Every store is linear in the gradient, so it may be added over micro-batches and averaged over ranks
before any inner product is formed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor


class GradientSums(ABC):
    """Keeps one gradient per group of one policy, and in a last row the whole gradient.

    The whole gradient is what the groups must add up to.
    """

    def project(self, weight: int, dy_ND: Tensor, x_ND: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """What takes the place of output gradients and inputs before they are multiplied."""
        return dy_ND, x_ND

    @abstractmethod
    def add(self, weight: int, group: int, product: Tensor) -> None:
        """Add a weight gradient ``(out, in)``, or the product of what was projected."""

    def add_whole(self, weight: int, gradient: Tensor) -> None:
        """Add a weight's whole gradient ``(out, in)`` of one backward pass to the last row."""
        self.add(weight, -1, gradient)

    @abstractmethod
    def tensors(self) -> list[Tensor]:
        """What must be added over ranks."""

    def memory(self) -> int:
        """Bytes that are kept."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors())

    @abstractmethod
    def gram(self) -> Tensor:
        """``(G + 1, G + 1)`` inner products of the groups' and the whole gradient, float64."""

    def relative_error(self) -> float:
        """Stated relative standard error of a norm; waits for the device."""
        return 0.0

    def clear(self) -> None:
        """Set everything to zero."""
        for tensor in self.tensors():
            tensor.zero_()
