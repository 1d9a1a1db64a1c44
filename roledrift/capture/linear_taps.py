"""Linear layers whose weight gradient is split by group while autograd computes it.

For ``y = x W^T`` the weight gradient is ``dY^T X``, a sum over tokens; restricted to the tokens of
one group it is that group's gradient. An identity behind the layer, the *tap*, saves ``x`` and
receives ``dY``, and training stays bit-identical. Whether every part of a weight's gradient has
come through its tap is checked against the gradient itself (:mod:`roledrift.capture.closure`).

``x`` is held in autograd's own saved tensors, never beside them: checkpointing frees and recomputes
it as if the tap was not there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from roledrift.capture.gradient_sums import GradientSums
from roledrift.capture.hooks import WeakHook
from roledrift.capture.row_groups import Pieces, RowGroups

_LABELS = 4096
"""Labels of a step that are remembered; a host that never drains must not fill the memory."""


class Accumulator:
    """What is known about one policy's gradients in the current step."""

    def __init__(self, policy: str, n_groups: int) -> None:
        self.policy = policy
        self.n_groups = n_groups
        self.names: list[str] = []
        self.shapes: list[tuple[int, int]] = []
        self.store: GradientSums | None = None
        self.counts: Tensor | None = None
        self.strange: Tensor | None = None
        self.misfits = 0
        self.tapped: set[int] = set()
        """Weights whose layer has been tapped since their last gradient arrived."""
        self._last: RowGroups | None = None

    def receive(self, weight: int, dy: Tensor, x: Tensor, rows: RowGroups) -> None:
        """Add one layer's share of one micro-batch; a tap's backward ends here."""
        self.tapped.add(weight)
        n_tokens = rows.tokens(dy.shape)
        if n_tokens is None or self.store is None:
            self.misfits += 1
            return
        self.note(rows)
        dy_ND, x_ND = dy.reshape(n_tokens, -1), x.reshape(n_tokens, -1)
        try:
            if x_ND.dtype != dy_ND.dtype:
                x_ND = x_ND.to(dy_ND.dtype)
            dy_ND, x_ND = self.store.project(weight, dy_ND, x_ND)
            for group, product in products(dy_ND, x_ND, rows):
                # Rows of an unknown role come last. They are no group's, so the groups add up to
                # the gradient without them.
                known = group < self.n_groups
                self.store.add(weight, group, product if known else -product)
        except RuntimeError:
            # torch's own errors, out of memory among them: a tap must not end a training run.
            self.misfits += 1

    def note(self, rows: RowGroups) -> None:
        """Count the groups of a micro-batch, once although every layer reports it."""
        if rows is self._last:
            return
        self._last = rows
        counts, strange = rows.counts(), rows.strange.long()
        self.counts = counts if self.counts is None else self.counts + counts
        self.strange = strange if self.strange is None else self.strange + strange

    def seen(self) -> tuple[Tensor, Tensor]:
        """How often each group was seen, and the two flags of strange labels."""
        counts = torch.zeros(self.n_groups) if self.counts is None else self.counts
        return counts, torch.zeros(2) if self.strange is None else self.strange

    def clear(self) -> None:
        """Forget the step."""
        self.counts = self.strange = self._last = None
        self.misfits = 0
        self.tapped.clear()
        if self.store is not None:
            self.store.clear()


@dataclass(slots=True)
class Watch:
    """What all layers of an attached model share.

    Attributes:
        measuring: False makes every hook return at once.
        rows: Labels of the micro-batch whose forward runs now.
        history: Labels set in this step, each with autograd's sequence number at that time.
        unlabelled: Layers that ran with gradients but without labels.
        seconds: Time spent in hooks.
    """

    measuring: bool = True
    rows: RowGroups | None = None
    history: deque[tuple[int, RowGroups | None]] = field(
        default_factory=lambda: deque(maxlen=_LABELS)
    )
    unlabelled: int = 0
    seconds: float = 0.0

    def take_ms(self) -> float:
        """Time spent in backward hooks since the last call."""
        spent, self.seconds = self.seconds, 0.0
        return spent * 1e3

    def label(self, rows: RowGroups | None) -> None:
        """From now on forwards belong to these rows."""
        self.rows = rows
        self.history.append((_sequence_number(), rows))

    def clear(self) -> None:
        """Forget the step."""
        self.history.clear()
        self.rows, self.unlabelled = None, 0

    def current(self) -> RowGroups | None:
        """Labels of the forward that runs now, also if it is a recomputation inside a backward.

        Reentrant checkpointing runs the only forward that records a graph during the backward,
        when the labels of another micro-batch may have been set. The node being executed was
        created by the original forward, so its sequence number tells which labels were set then.
        """
        if torch._C._current_graph_task_id() == -1:
            return self.rows
        node: Any = torch._C._current_autograd_node()
        if node is None:
            return self.rows
        number = node._sequence_nr()
        for begin, rows in reversed(self.history):
            if begin <= number:
                return rows
        return self.rows


def tells_backwards() -> bool:
    """Whether this torch says which backward runs; the functions for it are private."""
    names = ("_current_graph_task_id", "_current_autograd_node")
    return all(hasattr(torch._C, name) for name in names) and hasattr(
        torch.autograd, "_get_sequence_nr"
    )


def _sequence_number() -> int:
    return int(torch.autograd._get_sequence_nr())  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Site:
    """One weight of one policy: where it is and where its gradients go."""

    module: nn.Linear
    name: str
    ledger: Accumulator
    weight: int
    watch: Watch

    def rows_now(self) -> RowGroups | None:
        """Labels to record this forward under; None if there is nothing to record."""
        if not (self.watch.measuring and torch.is_grad_enabled()):
            return None
        if not self.module.weight.requires_grad:
            return None
        rows = self.watch.current()
        if rows is None:
            self.watch.unlabelled += 1
        return rows

    @property
    def is_plain(self) -> bool:
        """Whether the layer computes ``x W^T + b`` and nothing else has put itself in its place."""
        own = type(self.module).forward is nn.Linear.forward
        return own and "forward" not in vars(self.module)

    def before(self, module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Run in front of the layer's forward."""
        # A shallow copy of the layer has its hooks and is another layer.
        if not args or not isinstance(args[0], Tensor):
            return None
        casts = torch.is_autocast_enabled(args[0].device.type)
        if not casts or module is not self.module or not self.is_plain:
            return None
        # Autocast would cast x inside the layer and save that copy; casting here, which gives the
        # same bits, lets the tap save the same copy instead of keeping x alive too.
        return (_autocast(args[0]), *args[1:])

    def after(self, module: nn.Module, args: tuple[Any, ...], y: Any) -> Any:
        """Run behind it: tap what it gives."""
        if module is not self.module or not args or not isinstance(y, Tensor):
            return None
        rows = self.rows_now() if y.requires_grad else None
        return None if rows is None else _Tap.apply(y, args[0], self, rows)  # type: ignore[no-untyped-call]


class _LayerHook(WeakHook):
    def __call__(self, *args: Any) -> Any:
        # Under a compiler this is a constant, and the hook no part of the graph.
        return None if torch.compiler.is_compiling() else super().__call__(*args)


def install_tap(site: Site) -> tuple[RemovableHandle, RemovableHandle]:
    """Watch a layer without changing a bit of what it computes.

    The hooks stand directly around the layer's ``forward``, whoever may have replaced that, inside
    all hooks of other parties.
    """
    return (
        site.module.register_forward_pre_hook(_LayerHook(site.before)),
        site.module.register_forward_hook(_LayerHook(site.after), prepend=True),
    )


@contextmanager
def _plain(device: str) -> Iterator[None]:
    with torch.no_grad(), torch.autocast(device, enabled=False):
        yield


def quiet(device: str) -> AbstractContextManager[None]:
    """Neither gradients nor autocast; free of charge in an ordinary backward, which has neither."""
    if torch.is_grad_enabled() or torch.is_autocast_enabled(device):
        return _plain(device)
    return nullcontext()


def _autocast(value: Tensor) -> Tensor:
    device = value.device.type
    if not torch.is_autocast_enabled(device) or not value.is_floating_point():
        return value
    if value.dtype == torch.float64:
        return value
    return value.to(torch.get_autocast_dtype(device))


class _Tap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, x: Tensor, site: Site, rows: RowGroups) -> Tensor:
        ctx.save_for_backward(x)
        ctx.site, ctx.rows = site, rows
        return y.view_as(y)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, None, None]:
        (x,) = ctx.saved_tensors
        site: Site = ctx.site
        begin = time.perf_counter()
        with quiet(dy.device.type):
            site.ledger.receive(site.weight, dy, x, ctx.rows)
        site.watch.seconds += time.perf_counter() - begin
        return dy, None, None, None


def products(dy_ND: Tensor, x_ND: Tensor, rows: RowGroups) -> Iterator[tuple[int, Tensor]]:
    """``dY^T X`` of each group, ``(D_out, D_in)``; unknown roles come last as ``n_groups``."""
    if not rows.on_host:
        yield from _masked_products(dy_ND, x_ND, rows)
        return
    for piece in rows.cut(dy_ND.shape[0]):
        yield piece.group, _piece_product(dy_ND, x_ND, piece)


def _piece_product(dy_ND: Tensor, x_ND: Tensor, piece: Pieces) -> Tensor:
    # On a CPU a few rows by many columns take half of the time of many rows by a few columns.
    if dy_ND.shape[1] > x_ND.shape[1]:
        return _product(x_ND, dy_ND, piece).t()
    return _product(dy_ND, x_ND, piece)


def _product(a_ND: Tensor, b_ND: Tensor, piece: Pieces) -> Tensor:
    if piece.positions is not None:
        where = piece.positions.to(a_ND.device)
        return a_ND[where].t() @ b_ND[where]
    (start, stop), *others = piece.runs
    if stop - start == a_ND.shape[0]:
        return a_ND.t() @ b_ND
    product = a_ND[start:stop].t() @ b_ND[start:stop]
    low = product.dtype in (torch.bfloat16, torch.float16)
    if low and others:
        product = product.float()
    for start, stop in others:
        if low:
            product += a_ND[start:stop].t() @ b_ND[start:stop]
        else:
            product.addmm_(a_ND[start:stop].t(), b_ND[start:stop])
    return product


def _masked_products(dy_ND: Tensor, x_ND: Tensor, rows: RowGroups) -> Iterator[tuple[int, Tensor]]:
    """Labels on an accelerator: one product without waiting for them.

    The narrower side is repeated once per group, zero outside the group; on an accelerator a wider
    skinny product costs next to nothing more, it is bound by reading the wider side.
    """
    n, n_out = dy_ND.shape
    mask = rows.mask(n, dy_ND.dtype)
    groups = mask.shape[1]
    if n_out <= x_ND.shape[1]:
        wide = (mask[:, :, None] * dy_ND[:, None, :]).reshape(n, groups * n_out)
        split = (wide.t() @ x_ND).reshape(groups, n_out, -1)
    else:
        wide = (mask[:, :, None] * x_ND[:, None, :]).reshape(n, -1)
        split = (dy_ND.t() @ wide).reshape(n_out, groups, -1).transpose(0, 1)
    yield from enumerate(split.unbind(0))
