from __future__ import annotations

import itertools
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.report.draw.panels import (
    log_ticks,
    padded_range,
    step_ticks,
    value_ticks,
)
from roledrift.report.draw.svg import panel_svg, stacked_svg
from roledrift.report.model import Line, Mark, Panel

FLOATS = st.floats(-1e12, 1e12, allow_nan=False)


@given(FLOATS, FLOATS, st.integers(2, 9))
def test_round_values_lie_inside_evenly_and_are_few(a: float, b: float, most: int) -> None:
    low, high = sorted((a, b))
    if high - low < 1e-6 * max(abs(low), abs(high), 1e-9):
        return
    found = value_ticks(low, high, most)
    assert 1 <= len(found) <= most + 1
    room = 1e-5 * max(abs(low), abs(high))
    assert all(low - room <= value <= high + room for value in found)
    gaps = [y - x for x, y in itertools.pairwise(found)]
    assert all(math.isclose(gap, gaps[0], rel_tol=1e-3, abs_tol=room) for gap in gaps)


def test_steps_are_whole_numbers() -> None:
    assert step_ticks(1, 21, 6) == (5, 10, 15, 20)
    assert step_ticks(0, 0, 5) == (0,)


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
    assert log_ticks(*ends) == found


def test_an_axis_leaves_room_around_its_values() -> None:
    assert padded_range([0.0, 1.0], log=False, share=0.05) == (-0.05, 1.05)
    assert padded_range([], log=True, share=0.05) == (0.1, 1.0)
    low, high = padded_range([2.0], log=False, share=0.05)
    assert low < 2 < high


def test_names_at_the_ends_keep_their_distance() -> None:
    lines = tuple(Line(name, (0, 1), (0.5, 0.5), tone=0) for name in "abcd")
    svg = panel_svg(Panel("p", lines, (0, 1), limits=(0.0, 1.0)), "key")
    heights = sorted(float(y) for y in re.findall(r'<text x="[^"]*" y="([^"]*)"[^>]*>[a-d]<', svg))
    assert len(heights) == 4
    assert min(b - a for a, b in itertools.pairwise(heights)) > 8


def test_many_names_stay_beside_the_plot() -> None:
    lines = tuple(Line(f"name {at:02}", (0, 1), (0.0, 0.0), tone=0) for at in range(12))
    svg = panel_svg(Panel("p", lines, (0, 1), limits=(0.0, 1.0)), "key")
    height = float(re.findall(r'viewBox="0 0 [0-9.]+ ([0-9.]+)"', svg)[0])
    heights = sorted(float(y) for y in re.findall(r'y="([^"]*)"[^>]*>name', svg))
    assert len(heights) == 12
    assert heights[0] > 0
    assert heights[-1] < height - 15
    assert min(b - a for a, b in itertools.pairwise(heights)) > 8


def test_the_axis_of_steps_says_that_it_is_one() -> None:
    svg = panel_svg(Panel("p", (Line("a", (0, 9), (0.0, 1.0)),), (0, 9)), "key")
    assert ">step</text>" in svg


def test_of_a_long_name_the_ends_are_kept() -> None:
    names = [f"voting-sp-verbose-with-a-long-name-{seed}" for seed in (10, 11)]
    lines = tuple(Line(name, (0, 1), (0.1, 0.9), tone=0) for name in names)
    shown = re.findall(r">(voting[^<]*)<", panel_svg(Panel("p", lines, (0, 1)), "key"))
    assert len(set(shown)) == 2
    assert all(len(name) <= 34 and "…" in name for name in shown)


def test_an_onset_and_its_alert_are_both_named_at_the_end_of_a_run() -> None:
    line = Line("a", tuple(range(100)), (0.5,) * 100)
    marks = (Mark(97, "onset 97"), Mark(99, "alert 99"))
    svg = panel_svg(Panel("p", (line,), (0, 99), marks=marks), "key")
    assert "onset 97" in svg
    assert "alert 99" in svg


def test_the_checkpoint_is_marked_but_not_as_what_went_wrong() -> None:
    line = Line("a", tuple(range(100)), (0.5,) * 100)
    marks = (Mark(40, "checkpoint 40", mild=True), Mark(60, "onset 60"))
    svg = panel_svg(Panel("p", (line,), (0, 99), marks=marks), "key")
    inks = dict(re.findall(r'fill="([^"]+)">(checkpoint 40|onset 60)<', svg))
    assert inks == {"var(--soft)": "checkpoint 40", "var(--failing)": "onset 60"}


def test_panels_one_below_the_other_have_one_axis_of_steps() -> None:
    def last_step(panel: Panel, place: int, *, narrow: bool) -> str:
        svg = stacked_svg(panel, "key", place, narrow=narrow)
        return re.findall(r'<text x="([^"]+)"[^>]*>100</text>', svg)[0]

    several = tuple(Line(f"a long name {at}", (0, 100), (0.0, 1.0), tone=at) for at in range(2))
    above = Panel("p", several, (0, 100), margin=13)
    below = Panel("q", several[:1], (0, 100), margin=13)
    for narrow in (False, True):
        assert last_step(above, 0, narrow=narrow) == last_step(below, 1, narrow=narrow)
