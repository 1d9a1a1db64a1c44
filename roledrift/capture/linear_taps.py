"""Linear layers whose weight gradient is split by group while autograd computes it.

For ``y = x W^T`` the weight gradient is ``dY^T X``, a sum over tokens; restricted to the tokens of
one group it is that group's gradient. A *tap* watches: an identity behind the layer saves ``x`` and
receives ``dY``, and training stays bit-identical. A *replacement* takes the layer's place: its
backward computes the groups' gradients and returns their sum, which saves the second product but
adds in another order than the plain layer. Where a micro-batch holds one group only, neither is
needed: an identity in front of the weight receives the gradient that autograd computes anyway.

``x`` is held in autograd's own saved tensors, never beside them: checkpointing frees and recomputes
it as if the tap was not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from roledrift.capture.gradient_store import GradientStore, SketchStore
from roledrift.capture.row_groups import Pieces, RowGroups


class Ledger:
    """What is known about one policy's gradients in the current step.

    Args:
        policy: Name of the policy.
        n_groups: Groups in the registry.
    """

    def __init__(self, policy: str, n_groups: int) -> None:
        self.policy = policy
        self.n_groups = n_groups
        self.shapes: list[tuple[int, int]] = []
        self.store: GradientStore | None = None
        self.counts: Tensor | None = None
        self.strange: Tensor | None = None
        self.misfits = 0
        self._last: RowGroups | None = None

    def receive(self, weight: int, dy: Tensor, x: Tensor, rows: RowGroups) -> None:
        """Add one layer's share of one micro-batch; a tap's backward ends here."""
        n_tokens = rows.tokens(dy.shape)
        if n_tokens is None or self.store is None:
            self.misfits += 1
            return
        self.note(rows)
        dy_ND, x_ND = dy.reshape(n_tokens, -1), x.reshape(n_tokens, -1)
        try:
            dy_ND, x_ND = self.store.project(weight, dy_ND, x_ND.to(dy_ND.dtype))
            for group, product in products(dy_ND, x_ND, rows):
                if group < self.n_groups:
                    self.store.add(weight, group, product)
        except RuntimeError:
            # torch's own errors, out of memory among them: a tap must not end a training run.
            self.misfits += 1

    def receive_whole(self, weight: int, dw: Tensor, rows: RowGroups) -> None:
        """Add one layer's weight gradient of a micro-batch that holds a single group."""
        self.note(rows)
        if self.store is None or rows.only is None or rows.only >= self.n_groups:
            return
        try:
            self.store.add(weight, rows.only, dw)
        except RuntimeError:
            # As above: out of memory here is no reason to end a training run.
            self.misfits += 1

    def note(self, rows: RowGroups) -> None:
        """Count the groups of a micro-batch, once although every layer reports it."""
        if rows is self._last:
            return
        self._last = rows
        counts, strange = rows.counts(), rows.strange.long()
        self.counts = counts if self.counts is None else self.counts + counts
        self.strange = strange if self.strange is None else self.strange + strange

    def clear(self) -> None:
        """Forget the step."""
        self.counts = self.strange = self._last = None
        self.misfits = 0
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
    """

    measuring: bool = True
    rows: RowGroups | None = None
    history: list[tuple[int, RowGroups | None]] = field(default_factory=list)
    unlabelled: int = 0

    def label(self, rows: RowGroups | None) -> None:
        """From now on forwards belong to these rows."""
        self.rows = rows
        self.history.append((_sequence_number(), rows))

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


def _sequence_number() -> int:
    return int(torch.autograd._get_sequence_nr())  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Site:
    """One weight of one policy: where it is and where its gradients go."""

    module: nn.Linear
    name: str
    ledger: Ledger
    weight: int
    watch: Watch

    @property
    def can_share_product(self) -> bool:
        """Whether the layer's own weight gradient is what the store wants."""
        own = type(self.module).forward is nn.Linear.forward
        return own and not isinstance(self.ledger.store, SketchStore)

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


class Removal:
    """Undoes an installation, like the handle of a hook."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    def remove(self) -> None:
        """Give the module its own forward back."""
        self._module.__dict__.pop("forward", None)


def install_tap(site: Site) -> Removal:
    """Watch a layer without changing a bit of what it computes."""
    return _install(site, _tapped)


def install_replacement(site: Site) -> Removal:
    """Take a layer's place."""
    return _install(site, _replaced)


def _install(site: Site, measured: Callable[[Tensor, Site, RowGroups], Tensor]) -> Removal:
    module, own = site.module, site.module.forward

    def forward(x: Tensor) -> Tensor:
        rows = site.rows_now()
        if rows is None:
            return own(x)
        if rows.only is not None and site.can_share_product:
            # One group alone: its gradient is the weight gradient, which autograd computes anyway.
            weight: Tensor = _WeightTap.apply(module.weight, site, rows)  # type: ignore[no-untyped-call]
            return F.linear(x, weight, module.bias)
        return measured(x, site, rows)

    # Not setattr: a module must not take a function for a submodule's name.
    module.__dict__["forward"] = forward
    return Removal(module)


def _tapped(x: Tensor, site: Site, rows: RowGroups) -> Tensor:
    # Autocast would cast x inside the layer and save that copy; casting here, which gives the same
    # bits, lets the tap save the same copy instead of keeping x alive too.
    x = _autocast(x)
    y = type(site.module).forward(site.module, x)
    if not y.requires_grad:
        return y
    tapped: Tensor = _Tap.apply(y, x, site, rows)  # type: ignore[no-untyped-call]
    return tapped


def _replaced(x: Tensor, site: Site, rows: RowGroups) -> Tensor:
    weight = _autocast(site.module.weight)
    bias = None if site.module.bias is None else _autocast(site.module.bias)
    y: Tensor = _Replacement.apply(_autocast(x), weight, bias, site, rows)  # type: ignore[no-untyped-call]
    return y


@contextmanager
def _plain(device: str) -> Iterator[None]:
    with torch.no_grad(), torch.autocast(device, enabled=False):
        yield


def _quiet(device: str) -> AbstractContextManager[None]:
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


class _WeightTap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, site: Site, rows: RowGroups) -> Tensor:
        ctx.site, ctx.rows = site, rows
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, dw: Tensor) -> tuple[Tensor, None, None]:
        site: Site = ctx.site
        with _quiet(dw.device.type):
            site.ledger.receive_whole(site.weight, dw, ctx.rows)
        return dw, None, None


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
        with _quiet(dy.device.type):
            site.ledger.receive(site.weight, dy, x, ctx.rows)
        return dy, None, None, None


class _Replacement(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, site: Site, rows: RowGroups
    ) -> Tensor:
        # The plain layer too keeps its weight only where the input's gradient is wanted.
        ctx.save_for_backward(x, weight if ctx.needs_input_grad[0] else None)
        ctx.site, ctx.rows, ctx.has_bias = site, rows, bias is not None
        ctx.dtype = weight.dtype
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
        x, weight = ctx.saved_tensors
        site: Site = ctx.site
        with _quiet(dy.device.type):
            dx = None if weight is None else dy @ weight
            db = dy.flatten(0, -2).sum(0) if ctx.has_bias else None
            dw = _split_weight_gradient(site, dy, x, ctx.rows)
        return dx, dw.to(ctx.dtype), db, None, None


def _split_weight_gradient(site: Site, dy: Tensor, x: Tensor, rows: RowGroups) -> Tensor:
    ledger = site.ledger
    n_tokens = rows.tokens(dy.shape)
    if n_tokens is None or ledger.store is None:
        ledger.misfits += 1
        return dy.flatten(0, -2).t() @ x.flatten(0, -2)
    ledger.note(rows)
    total: Tensor | None = None
    for group, product in products(dy.reshape(n_tokens, -1), x.reshape(n_tokens, -1), rows):
        if group < ledger.n_groups:
            ledger.store.add(site.weight, group, product)
        total = product if total is None else total + product
    return torch.zeros_like(site.module.weight) if total is None else total


def products(dy_ND: Tensor, x_ND: Tensor, rows: RowGroups) -> Iterator[tuple[int, Tensor]]:
    """``dY^T X`` of each group, ``(D_out, D_in)``; unknown roles come last as ``n_groups``."""
    if not rows.on_host:
        yield from _masked_products(dy_ND, x_ND, rows)
        return
    for piece in rows.cut(dy_ND.shape[0]):
        yield piece.group, _piece_product(dy_ND, x_ND, piece)


def _piece_product(dy_ND: Tensor, x_ND: Tensor, piece: Pieces) -> Tensor:
    if piece.positions is not None:
        where = piece.positions.to(dy_ND.device)
        return dy_ND[where].t() @ x_ND[where]
    (start, stop), *others = piece.runs
    product = dy_ND[start:stop].t() @ x_ND[start:stop]
    low = product.dtype in (torch.bfloat16, torch.float16)
    if low and others:
        product = product.float()
    for start, stop in others:
        if low:
            product += dy_ND[start:stop].t() @ x_ND[start:stop]
        else:
            product.addmm_(dy_ND[start:stop].t(), x_ND[start:stop])
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
