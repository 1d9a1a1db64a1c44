"""Folds and sketches keep inner products to their stated error; full stores keep everything."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from roledrift.capture.gradient_store import (
    BUDGET_BYTES,
    FOLD_WIDTH,
    FoldStore,
    FullStore,
    SketchStore,
    fold_error,
    fold_into,
    fold_signs,
    fold_width,
    loss_scale,
    rank_count,
    sum_dtype,
)

SHAPES = [(64, 3000), (1700, 64), (7, 13)]


def gradients(n_groups: int = 4) -> list[list[torch.Tensor]]:
    """Per group one matrix per shape, correlated between groups."""
    source = torch.Generator().manual_seed(0)
    shared = [torch.randn(*two, generator=source, dtype=torch.float64) for two in SHAPES]
    return [
        [one + torch.randn(one.shape, generator=source, dtype=torch.float64) for one in shared]
        for _ in range(n_groups)
    ]


def exact(found: list[list[torch.Tensor]]) -> torch.Tensor:
    flat = torch.stack([torch.cat([one.flatten() for one in its]) for its in found])
    return flat @ flat.t()


def assert_whole_is_the_sum(got: torch.Tensor) -> None:
    """The last row of a store that got every group's gradient as a part of the whole one."""
    torch.testing.assert_close(got[:-1].sum(0), got[-1])


def slow_fold(values: torch.Tensor, width: int) -> torch.Tensor:
    """The definition, entry by entry."""
    out, signs = torch.zeros(width, dtype=torch.float64), fold_signs(width)
    for index, value in enumerate(values.tolist()):
        lap, place = divmod(index, width)
        out[place] += value * float(signs[(lap * 20_011) % width + place])
    return out


def test_folding_in_parts_equals_its_definition() -> None:
    source = torch.Generator().manual_seed(1)
    values = torch.randn(1000, generator=source, dtype=torch.float64)
    out, signs = torch.zeros(97, dtype=torch.float64), fold_signs(97).double()
    for start, stop in ((0, 50), (50, 400), (400, 401), (401, 1000)):
        fold_into(out, signs, values[start:stop], start)
    torch.testing.assert_close(out, slow_fold(values, 97))


def test_fold_is_linear_and_within_its_stated_error() -> None:
    found = gradients()
    signs = fold_signs(FOLD_WIDTH)
    settings = {"signs": signs, "dtype": torch.float64, "device": torch.device("cpu")}
    store = FoldStore(SHAPES, 4, **settings)
    for group, its in enumerate(found):
        for weight, one in enumerate(its):
            store.add(weight, group, one / 2)
            store.add(weight, group, one / 2)
            store.add_whole(weight, one)
    got, expected = store.gram(), exact(found)
    assert_whole_is_the_sum(got)
    got = got[:-1, :-1]
    lengths = expected.diagonal().sqrt()
    # Five standard deviations of a norm; a cosine deviates by at most 1 / sqrt(width).
    norm_error = (got.diagonal().sqrt() / lengths - 1).abs().max()
    assert norm_error < 5 * store.relative_error()
    off = (got - expected) / lengths[:, None] / lengths[None]
    assert off.abs().max() < 10 * store.relative_error()
    store.clear()
    assert not store.gram().any()


def test_the_stated_error_of_a_fold_is_its_spread() -> None:
    """Over many independent gradients a folded squared norm is unbiased and spreads as stated."""
    source = torch.Generator().manual_seed(3)
    width, signs = 211, fold_signs(211)
    ratios = []
    for _ in range(300):
        values = torch.randn(5000, generator=source)
        out = torch.zeros(width)
        fold_into(out, signs, values, 0)
        ratios.append(float(out.norm() / values.norm()))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.01)
    assert np.std(ratios) == pytest.approx(fold_error(width), rel=0.2)


def test_structured_gradients_do_not_add_up_in_a_fold() -> None:
    """A gradient of equal rows is the worst case for signs that repeat."""
    values = torch.ones(40 * FOLD_WIDTH)
    out = torch.zeros(FOLD_WIDTH)
    fold_into(out, fold_signs(FOLD_WIDTH), values, 0)
    assert float(out.norm() / values.norm()) == pytest.approx(1, abs=5 * fold_error(FOLD_WIDTH))


@pytest.mark.parametrize("n_rows", [1, 4, 6, 8, 15, 60])
def test_folds_fit_the_budget(n_rows: int) -> None:
    width = fold_width(n_rows)
    assert width <= FOLD_WIDTH
    assert (n_rows * width + 2 * width) * 4 <= BUDGET_BYTES
    assert all(width % factor for factor in range(2, math.isqrt(width) + 1))
    assert fold_width(4) == FOLD_WIDTH


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
