"""Several processes measure what one does, although some never see a role, or any row."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from rank import measured, reduced

from roledrift.capture.ranks import TorchReducer
from roledrift.errors import AttachError
from roledrift.sums import Key
from tests.ranks import together


@pytest.mark.ranks
@pytest.mark.parametrize("count", [2, 3])
def test_ranks_add_up_to_one_process(tmp_path, count):
    meeting = str(tmp_path / "meeting")
    first, *others = together(reduced, [(rank, count, meeting) for rank in range(count)])
    assert [one["first"] for one in (first, *others)] == [True] + [False] * len(others)
    assert all(one["sums"] == first["sums"] for one in others)
    expected = measured([0, 1])
    assert Key("aggregator", "old.chi2") in expected
    assert Key("generator/1", "length") in expected
    assert set(first["sums"]) == set(expected)
    for key, value in expected.items():
        assert numbers(first["sums"][key]) == pytest.approx(numbers(value), rel=1e-12), key
    assert all(one["empty"] == {} for one in (first, *others))
    # The first rank decides, whatever the others think.
    assert all(one["stop"] == [True, False] for one in (first, *others))


def numbers(value):
    return [float(one) for one in astuple(value) if isinstance(one, int | float)]


def test_without_process_group_it_says_what_to_do():
    with pytest.raises(AttachError, match="init_process_group"):
        TorchReducer()
