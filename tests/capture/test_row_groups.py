"""Labels of rows and tokens: the registry, and how activations are cut."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from roledrift.capture.row_groups import GroupRegistry, RowGroups
from roledrift.errors import CaptureError
from roledrift.workflow import EVAL_OPT, VOTING


def test_registry() -> None:
    registry = GroupRegistry.of(VOTING)
    assert registry.labels == ("generator/0", "generator/1", "generator/2", "aggregator")
    assert GroupRegistry.of(VOTING, slots=False).labels == ("generator", "aggregator")
    assert GroupRegistry.of(EVAL_OPT).labels == ("generator", "evaluator")


@pytest.mark.parametrize(
    "role",
    [
        [0, 1, 0],
        np.array([0, 1, 0], dtype=np.int32),
        torch.tensor([0, 1, 0]),
        ["generator", "aggregator", "generator"],
    ],
)
def test_what_roles_may_be(role: object) -> None:
    found = GroupRegistry.of(VOTING).rows(role, [2, 5, 0])
    # The aggregator has one slot: whatever slot it is given, there is nothing to tell apart.
    assert found.group.tolist() == [2, 3, 0]
    assert found.counts().tolist() == [1, 0, 1, 1]
    assert found.strange.tolist() == [False, False]


def test_strange_values_are_kept_apart() -> None:
    found = GroupRegistry.of(VOTING).rows(["generator", "critic", "generator"], [3, 0, -1])
    assert found.group.tolist() == [4, 4, 4], "a strange slot is no other slot"
    assert found.strange.tolist() == [True, True]
    assert found.counts().tolist() == [0, 0, 0, 0]


def test_what_roles_may_not_be() -> None:
    registry = GroupRegistry.of(VOTING)
    with pytest.raises(CaptureError, match="no slot was given"):
        registry.rows([0, 1])
    with pytest.raises(CaptureError, match="whole numbers"):
        registry.rows(torch.tensor([0.0]), torch.tensor([0]))
    with pytest.raises(CaptureError, match="whole numbers"):
        registry.rows(np.array([0.5]), [0])
    with pytest.raises(CaptureError, match="one shape"):
        registry.rows(torch.zeros(2, 3, 4, dtype=torch.long), torch.zeros(2, 3, 4).long())


def labelled(group: torch.Tensor) -> RowGroups:
    return RowGroups(group, 4, torch.zeros(2, dtype=torch.bool))


def test_which_activations_fit() -> None:
    per_row = labelled(torch.tensor([0, 1, 3]))
    size = torch.Size
    assert per_row.tokens(size([3, 9])) == 3
    assert per_row.tokens(size([15, 9])) is None, "how long rows are is not known yet"
    assert per_row.tokens(size([3, 5, 9])) == 15
    assert per_row.tokens(size([15, 9])) == 15
    assert per_row.tokens(size([14, 9])) is None
    assert per_row.tokens(size([2, 5, 9])) is None, "a part of the rows"
    square = labelled(torch.tensor([0, 1, 3]))
    assert square.tokens(size([3, 3, 9])) is None, "either side may be the rows"
    assert square.tokens(size([3, 5, 9])) == 15
    assert square.tokens(size([3, 3, 9])) == 9, "rows come first in this model"
    per_token = labelled(torch.zeros(2, 5, dtype=torch.long))
    assert per_token.tokens(size([2, 5, 9])) == 10
    assert per_token.tokens(size([10, 9])) == 10
    assert per_token.tokens(size([2, 4, 9])) is None
    assert per_token.tokens(size([9])) is None


@given(groups=st.lists(st.integers(0, 4), min_size=1, max_size=40), width=st.integers(1, 3))
def test_cuts_and_masks_hold_every_token_once(groups: list[int], width: int) -> None:
    found = labelled(torch.tensor(groups))
    n = len(groups) * width
    where = torch.full((n,), -1)
    for piece in found.cut(n):
        for start, stop in piece.runs:
            assert (where[start:stop] == -1).all()
            where[start:stop] = piece.group
        if piece.positions is not None:
            runs = torch.cat([torch.arange(*run) for run in piece.runs])
            assert torch.equal(piece.positions, runs)
    assert torch.equal(where, torch.tensor(groups).repeat_interleave(width))
    mask = found.mask(n, torch.float32)
    assert torch.equal(mask.argmax(1), where)
    assert torch.equal(mask.sum(1), torch.ones(n))
