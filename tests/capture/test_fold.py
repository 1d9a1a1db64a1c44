"""Folds keep inner products to their stated error, staged or not."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from roledrift.capture.fold import (
    BUDGET_BYTES,
    FOLD_WIDTH,
    FoldStore,
    fold_error,
    fold_into,
    fold_signs,
    fold_width,
)
from tests.capture.correlated_gradients import SHAPES, assert_whole_is_the_sum, exact, gradients


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


def fold_store(*, width: int = FOLD_WIDTH, stage: int = 0) -> FoldStore:
    settings = {"signs": fold_signs(width), "dtype": torch.float64, "device": torch.device("cpu")}
    return FoldStore(SHAPES, 4, stage=stage, **settings)


STAGES = [1, 8 * 5 * 200_000, 1 << 25]
"""Bytes: each weight alone, two weights and one, all together."""


@pytest.mark.parametrize("width", [97, FOLD_WIDTH])
@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_changes_nothing_in_whatever_order_weights_come(stage: int, width: int) -> None:
    source = torch.Generator().manual_seed(5)
    direct, staged = fold_store(width=width), fold_store(width=width, stage=stage)
    for weight in (2, 1, 0, 2, 2, 0, 1):
        rows, columns = SHAPES[weight]
        whole = torch.zeros(rows, columns, dtype=torch.float64)
        for group in (0, 3, 0):
            # As a tap delivers it, a tall product is the transpose of what lies in memory.
            product = torch.randn(columns, rows, generator=source, dtype=torch.float64).t()
            whole += product
            for store in (direct, staged):
                store.add(weight, group, product)
        for store in (direct, staged):
            store.add_whole(weight, whole)
    torch.testing.assert_close(staged.tensors()[0], direct.tensors()[0])
    assert direct.tensors()[0][0].any()
    staged.add(0, 0, whole.new_ones(SHAPES[0]))
    staged.clear()
    assert not staged.gram().any()
    assert staged.memory() > direct.memory()


@pytest.mark.parametrize("stage", [0, *STAGES])
def test_fold_is_linear_and_within_its_stated_error(stage: int) -> None:
    found = gradients()
    store = fold_store(stage=stage)
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
