from __future__ import annotations

import itertools
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.report.drawing import (
    room_around,
    round_powers,
    round_steps,
    round_values,
)
from roledrift.report.figures import panel_svg
from roledrift.report.model import Line, Panel

FLOATS = st.floats(-1e12, 1e12, allow_nan=False)


@given(FLOATS, FLOATS, st.integers(2, 9))
def test_round_values_lie_inside_evenly_and_are_few(a: float, b: float, most: int) -> None:
    low, high = sorted((a, b))
    if high - low < 1e-6 * max(abs(low), abs(high), 1e-9):
        return
    found = round_values(low, high, most)
    assert 1 <= len(found) <= most + 1
    room = 1e-5 * max(abs(low), abs(high))
    assert all(low - room <= value <= high + room for value in found)
    gaps = [y - x for x, y in itertools.pairwise(found)]
    assert all(math.isclose(gap, gaps[0], rel_tol=1e-3, abs_tol=room) for gap in gaps)


def test_steps_are_whole_numbers() -> None:
    assert round_steps(1, 21, 6) == (5, 10, 15, 20)
    assert round_steps(0, 0, 5) == (0,)


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        ((0.5, 3.0), (0.5, 1.0, 2.0)),
        ((0.9e-3, 1.1), (0.001, 0.01, 0.1, 1.0)),
        ((-1.0, 1.0), ()),
    ],
)
def test_powers_of_ten_get_digits_between_where_there_is_room(
    ends: tuple[float, float], found: tuple[float, ...]
) -> None:
    assert round_powers(*ends) == found


def test_an_axis_leaves_room_around_its_values() -> None:
    assert room_around([0.0, 1.0], log=False, share=0.05) == (-0.05, 1.05)
    assert room_around([], log=True, share=0.05) == (0.1, 1.0)
    low, high = room_around([2.0], log=False, share=0.05)
    assert low < 2 < high


def test_names_at_the_ends_keep_their_distance() -> None:
    lines = tuple(Line(name, (0, 1), (0.5, 0.5), tone=0) for name in "abcd")
    svg = panel_svg(Panel("p", lines, (0, 1), limits=(0.0, 1.0)), "key")
    heights = sorted(float(y) for y in re.findall(r'<text x="[^"]*" y="([^"]*)"[^>]*>[a-d]<', svg))
    assert len(heights) == 4
    assert min(b - a for a, b in itertools.pairwise(heights)) > 8
