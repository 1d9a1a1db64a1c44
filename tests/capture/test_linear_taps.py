"""One layer at a time: the split of a weight gradient, and what is left as it was."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from roledrift.capture.gradient_store import FullStore
from roledrift.capture.linear_taps import (
    Accumulator,
    Site,
    Watch,
    install_tap,
    products,
)
from roledrift.capture.row_groups import RowGroups


def labelled(group: torch.Tensor) -> RowGroups:
    return RowGroups(group, 3, torch.zeros(2, dtype=torch.bool))


@pytest.mark.parametrize("shape", [(5, 8), (8, 5)])
@pytest.mark.parametrize("on_host", [True, False])
@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_products(
    shape: tuple[int, int], on_host: bool, alternating: bool, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    group = torch.arange(12) % 4 if not alternating else torch.arange(40) % 4
    rows = labelled(group)
    rows.on_host = on_host
    n = 2 * len(group)
    dy, x = torch.randn(n, shape[0]).to(dtype), torch.randn(n, shape[1]).to(dtype)
    spread = group.repeat_interleave(2)
    found = dict(products(dy, x, rows))
    assert list(found) == [0, 1, 2, 3]
    for index, product in found.items():
        mine = spread == index
        expected = dy[mine].double().t() @ x[mine].double()
        tolerance = 1e-12 if dtype == torch.float64 else 0.05
        torch.testing.assert_close(product.double(), expected, atol=tolerance, rtol=0.01)


def one_site(bias: bool = False) -> tuple[nn.Linear, Site]:
    torch.manual_seed(0)
    layer = nn.Linear(4, 3, bias=bias).double()
    ledger = Accumulator("shared", 3)
    ledger.names.append("layer")
    ledger.shapes.append((3, 4))
    ledger.store = FullStore([(3, 4)], 3, dtype=torch.float64, device=torch.device("cpu"))
    return layer, Site(layer, "layer", ledger, 0, Watch())


@pytest.mark.parametrize("bias", [False, True])
def test_a_layer_gives_what_it_gave_before(bias: bool) -> None:
    layer, site = one_site(bias)
    x = torch.randn(4, 6, 4, dtype=torch.float64, requires_grad=True)
    plain = layer(x)
    expected = torch.autograd.grad(plain.square().sum(), [x, *layer.parameters()])
    handles = install_tap(site)
    site.watch.label(labelled(torch.tensor([0, 2, 3, 0])))
    y = layer(x)
    assert torch.equal(y, plain)
    for mine, its in zip(
        torch.autograd.grad(y.square().sum(), [x, *layer.parameters()]), expected, strict=True
    ):
        torch.testing.assert_close(mine, its, atol=1e-12, rtol=0)
    (kept,) = site.ledger.store.tensors()
    assert site.ledger.counts.tolist() == [2, 0, 1]
    assert not kept[1].any()
    dy = 2 * plain.detach()
    torch.testing.assert_close(kept[2], dy[1].t() @ x[1].detach())
    site.ledger.clear()
    assert not kept.any()
    for handle in handles:
        handle.remove()
    assert type(layer(x).grad_fn) is type(plain.grad_fn)


def test_nothing_happens_where_there_is_nothing_to_record() -> None:
    layer, site = one_site()
    install_tap(site)
    x = torch.randn(2, 6, 4, dtype=torch.float64)
    layer(x).sum().backward()
    assert site.watch.unlabelled == 1
    site.watch.label(labelled(torch.tensor([0, 1])))
    with torch.no_grad():
        layer(x)
    layer.weight.requires_grad_(False)
    layer(x.requires_grad_()).sum().backward()
    layer.weight.requires_grad_(True)
    site.watch.measuring = False
    layer(x).sum().backward()
    assert site.ledger.counts is None
    assert site.ledger.misfits == 0


def test_rows_that_do_not_fit_leave_the_gradient_right() -> None:
    layer, site = one_site()
    x = torch.randn(4, 6, 4, dtype=torch.float64)
    (expected,) = torch.autograd.grad(layer(x).square().sum(), [layer.weight])
    install_tap(site)
    site.watch.label(labelled(torch.tensor([0, 1])))
    (got,) = torch.autograd.grad(layer(x).square().sum(), [layer.weight])
    torch.testing.assert_close(got, expected)
    assert site.ledger.misfits == 1


@pytest.mark.parametrize("groups", [[0, 1], [1, 1]], ids=["mixed", "one group alone"])
def test_an_error_of_torch_inside_a_tap_does_not_end_training(groups: list[int]) -> None:
    layer, site = one_site()
    site.ledger.store = FullStore([(3, 5)], 3, dtype=torch.float64, device=torch.device("cpu"))
    install_tap(site)
    site.watch.label(labelled(torch.tensor(groups)))
    layer(torch.randn(2, 6, 4, dtype=torch.float64)).sum().backward()
    assert site.ledger.misfits == 1
    assert layer.weight.grad is not None
