"""Two ranks with half of the rows each give what one process with all rows gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gradient_models import GROUPS, ROLES, gram, rows, separate, tiny_model
from gradient_ranks_worker import measured

from tests.ranks import together

pytestmark = pytest.mark.ranks
CASES = [
    f"{kind} {way} {store}"
    for kind in ("ddp", "fsdp2")
    for way in ("tap", "ordered")
    for store in ("full", "fold")
] + ["fsdp1 tap full", "fsdp1 orig tap full"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    meeting = f"file://{tmp_path_factory.mktemp('ranks') / 'store'}"
    return together(measured, [(rank, meeting) for rank in range(2)])


@pytest.mark.parametrize("case", CASES)
def test_ranks_equal_one_process(case: str, results: list[dict[str, Any]]) -> None:
    torch.set_num_threads(1)
    first, second = (one[case] for one in results)
    assert first == second
    ((labels, products, relative_error, closure, covered, bypassed),) = first
    groups = ROLES if "ordered" in case else GROUPS
    assert len(labels) == len(groups.unique())
    expected = gram(separate(tiny_model(torch.float64, r=16), *rows(), groups)).numpy()
    lengths = expected.diagonal() ** 0.5
    off = abs(np.asarray(products) - expected) / lengths[:, None] / lengths[None]
    if "tap" in case:
        assert closure < 1e-7
        assert covered == 1
        assert bypassed == ()
    else:  # differences of .grad, which are all of it
        assert closure is covered is None
    if "full" in case:
        assert relative_error == 0
        assert off.max() < 1e-10
    else:
        assert 0 < relative_error < 0.005
        assert off.max() < 5 * 2 * relative_error


def test_a_sharded_weight_without_a_tap_counts_as_not_covered(
    results: list[dict[str, Any]],
) -> None:
    (whole,), (sharded,) = (results[0][f"{kind} norms tap full"] for kind in ("ddp", "fsdp2"))
    assert sharded[3] < 1e-7
    assert 0.9 < sharded[4] < 0.999
    assert 1 - sharded[4] == pytest.approx(1 - whole[4], rel=0.1)


def test_layers_that_are_bypassed_are_named_under_fsdp2(results: list[dict[str, Any]]) -> None:
    ((_, _, _, closure, covered, bypassed),) = results[0]["fsdp2 fused tap full"]
    assert closure < 1e-7
    assert covered < 0.999
    assert len(bypassed) == 12
    assert all(".mlp." in name for name in bypassed)


def test_a_sharded_weight_that_cannot_be_followed_leaves_the_record_unchecked(
    results: list[dict[str, Any]],
) -> None:
    ((labels, _, _, closure, covered, _),) = results[0]["fsdp2 norms method tap full"]
    assert len(labels) == 4
    assert closure is covered is None
