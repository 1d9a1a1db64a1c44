from __future__ import annotations

import re

import pytest

from roledrift.report.draw.plots import Dot, Plot
from roledrift.report.draw.scatter import dots_of, plot_size
from roledrift.report.draw.svg import plot_svg

DOTS = (Dot(0.5, "a", 0.6), Dot(0.7, "b", 0.4, 1, 2))


@pytest.mark.parametrize("rows", [True, False])
def test_points_are_numbered_in_their_order(rows: bool) -> None:
    lines = tuple((dot.name, (dot,)) for dot in DOTS) if rows else ()
    plot = Plot("k", "t", "c", ("x", "y"), rows=lines, dots=() if rows else DOTS)
    assert dots_of(plot) == list(DOTS)
    assert re.findall("<title>([^<]*)</title>", plot_svg(plot)) == ["a", "b"]


def test_long_keys_get_room() -> None:
    plot = Plot("k", "t", "c", ("x", "y"), dots=DOTS, keys=(("a" * 100, 0, 0),))
    assert plot_size(plot)[0] > 500


def test_many_keys_stand_in_rows_and_not_beside_each_other() -> None:
    few, many = (
        Plot("k", "t", "c", ("x", "y"), dots=DOTS, keys=(("a workflow (shape)", 0, 0),) * count)
        for count in (1, 8)
    )
    assert plot_size(many)[0] == plot_size(few)[0]
    assert plot_size(many)[1] > plot_size(few)[1] + 30
