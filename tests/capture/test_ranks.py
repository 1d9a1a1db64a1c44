"""Two processes measure what one does, although one of them never sees a role."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from rank import measured, reduced

from roledrift.capture.ranks import TorchReducer
from roledrift.errors import AttachError
from roledrift.sums import Key
from tests.ranks import together


@pytest.mark.ranks
def test_two_ranks_add_up_to_one_process(tmp_path):
    first, second = together(reduced, [(rank, str(tmp_path / "meeting")) for rank in range(2)])
    assert (first["first"], second["first"]) == (True, False)
    assert first["sums"] == second["sums"]
    expected = measured([0, 1])
    assert Key("aggregator", "old.chi2") in expected
    assert Key("generator/1", "length") in expected
    assert set(first["sums"]) == set(expected)
    for key, value in expected.items():
        assert numbers(first["sums"][key]) == pytest.approx(numbers(value), rel=1e-12), key
    assert first["empty"] == second["empty"] == {}
    # The first rank decides, whatever the other one thinks.
    assert first["stop"] == second["stop"] == [True, False]


def numbers(value):
    return [float(one) for one in astuple(value) if isinstance(one, int | float)]


def test_without_process_group_it_says_what_to_do():
    with pytest.raises(AttachError, match="init_process_group"):
        TorchReducer()
