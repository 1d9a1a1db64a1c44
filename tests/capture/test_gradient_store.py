"""Sketches keep inner products to their stated error; full stores keep everything."""

from __future__ import annotations

import torch

from roledrift.capture.fold import fold_signs
from roledrift.capture.gradient_store import (
    FullStore,
    SketchStore,
    loss_scale,
    rank_count,
    sum_dtype,
)
from tests.capture.correlated_gradients import SHAPES, assert_whole_is_the_sum, exact, gradients


def test_full_is_exact() -> None:
    found = gradients()
    store = FullStore(SHAPES, 4, dtype=torch.float64, device=torch.device("cpu"))
    for group, its in enumerate(found):
        for weight, one in enumerate(its):
            store.add(weight, group, one)
            store.add_whole(weight, one)
    assert_whole_is_the_sum(store.gram())
    torch.testing.assert_close(store.gram()[:-1, :-1], exact(found))
    assert store.relative_error() == 0
    store.clear()
    assert not store.gram().any()


def test_sketch_is_within_its_stated_error_for_low_rank_gradients() -> None:
    source = torch.Generator().manual_seed(4)
    shapes = [(48, 96)] * 40
    store = SketchStore(shapes, 2, dtype=torch.float32, device=torch.device("cpu"))
    products: list[list[torch.Tensor]] = [[], []]
    for group in range(2):
        for weight in range(len(shapes)):
            dy = torch.randn(3, 48, generator=source)
            x = torch.randn(3, 96, generator=source)
            products[group].append((dy.t() @ x).double())
            left, right = store.project(weight, dy, x)
            store.add(weight, group, left.t() @ right)
            store.add_whole(weight, dy.t() @ x)
    assert_whole_is_the_sum(store.gram().float())
    got, expected = store.gram().diagonal().sqrt()[:-1], exact(products).diagonal().sqrt()
    assert 0.01 < store.relative_error() < 0.1
    assert (got / expected - 1).abs().max() < 3 * store.relative_error()
    store.clear()
    assert store.relative_error() == 0


def test_signs_are_the_same_everywhere_and_leave_the_global_generator_alone() -> None:
    state = torch.get_rng_state()
    first = fold_signs(101)
    torch.manual_seed(9)
    assert torch.equal(first, fold_signs(101))
    torch.set_rng_state(state)
    SketchStore([(4, 4)], 1, dtype=torch.float32, device=torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), state)
    assert set(first.tolist()) == {-1.0, 1.0}


def test_small_facts() -> None:
    assert sum_dtype(torch.bfloat16) == torch.float32
    assert sum_dtype(torch.float64) == torch.float64
    assert rank_count() == 1
    assert loss_scale(None) is None
    assert loss_scale(torch.amp.GradScaler("cpu", enabled=False)) is None
    assert float(loss_scale(torch.amp.GradScaler("cpu", init_scale=8.0))) == 8
