"""Spans of rows that hold the turns of several roles."""

import pytest
import torch
from roledrift_trl.turns import masks_of, spans_of

from roledrift.errors import CaptureError

MASKS = ((0, 0, -1, 1), (1, 1, 0), (-1, -1))


def test_one_span_per_row_and_role() -> None:
    spans = spans_of((-1, -1, -1), MASKS, (1, 0, 2), width=5)
    assert spans.rows == (0, 0, 1, 1)
    assert spans.roles == (0, 1, 0, 1)
    mask_BC = torch.tensor([[1, 1, 1, 0, 0], [1, 0, 1, 1, 0], [1, 1, 0, 0, 0]])
    assert spans.own(mask_BC).tolist() == [
        [0, 0, 1, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 0, 0, 1, 0],
    ]
    assert spans.of(torch.tensor([5.0, 6.0, 7.0])).tolist() == [5.0, 5.0, 6.0, 6.0]


def test_without_masks_nothing_is_copied() -> None:
    spans = spans_of((1, 0, 1), None, (2, 0), width=5)
    assert (spans.rows, spans.roles) == ((0, 1), (1, 1))
    column = torch.zeros(2, 3)
    assert spans.of(column) is column
    assert spans.own(column) is column


def test_masks_come_from_the_rows() -> None:
    assert masks_of([{"prompt": "a"}], [3], 2) is None
    assert masks_of([{"role_mask": [0, -1]}, {"role_mask": torch.tensor([1])}], [2, 1], 2) == (
        (0, -1),
        (1,),
    )
    with pytest.raises(CaptureError, match="row 1 has 1 entries for 2 tokens"):
        masks_of([{"role_mask": [0]}, {"role_mask": [1]}], [1, 2], 2)
    with pytest.raises(CaptureError, match=r"row 0 holds \[-2, 2\]: give indices .* 0 to 1"):
        masks_of([{"role_mask": [2, 0, -2]}], [3], 2)
