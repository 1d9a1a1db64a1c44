"""Gradients of groups folded: all entries added, with random signs, into a fixed number of places.

Entry ``i`` of a policy's flattened gradient goes to place ``i mod width``: a CountSketch (Charikar,
Chen and Farach-Colton, 2002) without tables of places. It is linear; inner products are unbiased;
the relative standard deviation of a squared norm is sqrt(2 / width), of a norm half of that, and of
a cosine at most sqrt(1 / width).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from roledrift.capture.gradient_sums import GradientSums

FOLD_WIDTH = 32_749
"""Largest width of a folded gradient: the largest prime below 2^15."""
BUDGET_BYTES = 1 << 20
"""What the folded gradients of all policies and groups together may take."""
STAGE_BYTES = 1 << 25
"""What waits to be folded on an accelerator, per policy; a larger weight takes what it needs."""
_STRIDE = 20_011
"""Each lap reads the signs from elsewhere, so that two entries that meet at one place meet with
independent signs; the stride visits all offsets before it repeats one."""


class FoldStore(GradientSums):
    """Keeps the fold of every group's gradient.

    On a CPU every weight gradient is folded at once. On an accelerator that would be a dozen tiny
    kernels per layer, and launching them would take longer than the training step. There gradients
    of neighbouring weights are first added up side by side, the *stage*, and folded together.
    """

    def __init__(
        self,
        shapes: Sequence[tuple[int, int]],
        n_groups: int,
        *,
        signs: Tensor,
        dtype: torch.dtype,
        device: torch.device,
        stage: int | None = None,
    ) -> None:
        self._width = signs.numel() // 2
        self._signs = signs.to(device=device, dtype=dtype)
        self._sums = torch.zeros(n_groups + 1, self._width, dtype=dtype, device=device)
        self._rows = self._sums.unbind(0)
        sizes = [rows * columns for rows, columns in shapes]
        self._starts = [sum(sizes[:i]) for i in range(len(sizes))]
        # Products come with their short side in front, and are folded in the order they lie in.
        self._turned = [rows > columns for rows, columns in shapes]
        if stage is None:
            stage = 0 if device.type == "cpu" else STAGE_BYTES
        self._stage: _Stage | None = None
        if stage:
            most = stage // (self._sums.element_size() * (n_groups + 1))
            self._stage = _Stage(shapes, self._sums, self._signs, most=most)

    def add(self, weight: int, group: int, product: Tensor) -> None:
        """Fold a weight gradient ``(out, in)`` of a group."""
        if self._stage is not None:
            self._stage.add(weight, group, product)
            return
        flat = product.t() if self._turned[weight] else product
        fold_into(self._rows[group], self._signs, flat, self._starts[weight])

    def tensors(self) -> list[Tensor]:
        """The sums."""
        if self._stage is not None:
            self._stage.fold()
        return [self._sums]

    def memory(self) -> int:
        """Bytes of the sums and of the stage."""
        return _bytes(self._sums) + (0 if self._stage is None else _bytes(self._stage.values))

    def gram(self) -> Tensor:
        """``(G + 1, G + 1)`` inner products, float64."""
        (sums,) = self.tensors()
        flat = sums.double()
        return flat @ flat.t()

    def relative_error(self) -> float:
        """Of a norm: half of sqrt(2 / width)."""
        return fold_error(self._width)

    def clear(self) -> None:
        """Set everything to zero."""
        if self._stage is not None:
            self._stage.leave()
        self._sums.zero_()


@dataclass(frozen=True, slots=True)
class _Block:
    """Neighbouring weights that are folded together.

    Attributes:
        laps: How often their entries go around the places.
        slots: Per weight a view of the stage, one entry per group.
        offsets: ``(laps,)``, where the signs of each lap begin.
    """

    laps: int
    slots: dict[int, Tensor]
    offsets: Tensor


class _Stage:
    """Weight gradients of one block of weights after the other, until they are folded.

    A backward pass visits weights in the reverse of their order, so that it changes blocks seldom;
    in any other order the sums are the same and come more slowly.

    Args:
        shapes: ``(out, in)`` of each weight.
        sums: ``(G + 1, width)``, where folds go.
        signs: From :func:`fold_signs`.
        most: Entries of a block, as far as its weights allow.
    """

    def __init__(
        self, shapes: Sequence[tuple[int, int]], sums: Tensor, signs: Tensor, *, most: int
    ) -> None:
        self._sums, self._width = sums, sums.shape[1]
        self._signs = signs.unfold(0, self._width, 1)
        ranges = list(_ranges([rows * columns for rows, columns in shapes], most))
        laps = [_lap_range(start, stop, self._width) for _, start, stop in ranges]
        longest = max(last - first for first, last in laps)
        self.values = sums.new_zeros(len(sums), longest * self._width)
        self._blocks = [
            self._block(weights, start, shapes, range(*around))
            for (weights, start, _), around in zip(ranges, laps, strict=True)
        ]
        self._of = {weight: block for block in self._blocks for weight in block.slots}
        self._now: _Block | None = None

    def _block(
        self, weights: range, start: int, shapes: Sequence[tuple[int, int]], laps: range
    ) -> _Block:
        slots, place = {}, start - laps.start * self._width
        for weight in weights:
            rows, columns = shapes[weight]
            turned = rows > columns
            shape = (columns, rows) if turned else (rows, columns)
            flat = self.values[:, place : place + rows * columns]
            slot = flat.view(len(flat), *shape)
            slots[weight] = slot.transpose(1, 2) if turned else slot
            place += rows * columns
        offsets = torch.tensor([lap * _STRIDE % self._width for lap in laps])
        return _Block(len(laps), slots, offsets.to(self._sums.device))

    def add(self, weight: int, group: int, product: Tensor) -> None:
        """Add a weight gradient ``(out, in)`` of a group."""
        block = self._of[weight]
        if block is not self._now:
            self.fold()
            self._now = block
        block.slots[weight][group].add_(product)

    def fold(self) -> None:
        """Fold what is here and make room."""
        block = self._now
        if block is None:
            return
        used = self.values[:, : block.laps * self._width]
        laps = used.view(-1, block.laps, self._width)
        self._sums.add_(laps.mul_(self._signs[block.offsets]).sum(1))
        self.leave()

    def leave(self) -> None:
        """Make room without folding."""
        if self._now is not None:
            self.values[:, : self._now.laps * self._width].zero_()
            self._now = None


def _ranges(sizes: Sequence[int], most: int) -> Iterator[tuple[range, int, int]]:
    """Neighbouring weights of together at most ``most`` entries, and their first and last entry."""
    first = start = stop = 0
    for weight, size in enumerate(sizes):
        if weight > first and stop + size - start > most:
            yield range(first, weight), start, stop
            first, start = weight, stop
        stop += size
    yield range(first, len(sizes)), start, stop


def _lap_range(start: int, stop: int, width: int) -> tuple[int, int]:
    return start // width, (stop - 1) // width + 1


def fold_into(sums_K: Tensor, signs: Tensor, values: Tensor, start: int) -> None:
    """Add ``values`` with signs to ``sums_K``, entry ``i`` at position ``(start + i) mod K``.

    Args:
        sums_K: Changed in place.
        signs: From :func:`fold_signs`, of the dtype of the sums.
        values: Any shape.
        start: Index of the first value in the policy's flattened gradient.
    """
    flat, width = values.reshape(-1).to(sums_K.dtype), sums_K.numel()
    done = 0
    while done < flat.numel():
        lap, place = divmod(start + done, width)
        size = min(width - place, flat.numel() - done)
        offset = lap * _STRIDE % width + place
        part = flat if size == flat.numel() else flat.narrow(0, done, size)
        sums_K.narrow(0, place, size).addcmul_(part, signs.narrow(0, offset, size))
        done += size


def fold_signs(width: int) -> Tensor:
    """``(2 * width,)`` random signs, float32, the same in every process."""
    source = torch.Generator(device="cpu").manual_seed(20_260)
    return torch.randint(0, 2, (2 * width,), generator=source).float().mul_(2).sub_(1)


def fold_width(n_rows: int) -> int:
    """Largest prime width, at most 32749, at which ``n_rows`` folds and their signs fit 1 MiB.

    Rows are those of all groups, one more per policy for its whole gradient.
    """
    width = min(FOLD_WIDTH, BUDGET_BYTES // (4 * n_rows + 8))
    while any(width % factor == 0 for factor in range(2, math.isqrt(width) + 1)):
        width -= 1
    return width


def fold_error(width: int) -> float:
    """Relative standard deviation of a norm computed from a fold of this width."""
    return 0.5 * math.sqrt(2.0 / width)


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
