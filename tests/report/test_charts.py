from __future__ import annotations

import pytest

from roledrift.report.charts import dots_of, draw_plot, plot_size
from roledrift.report.plots import Dot, Plot
from roledrift.report.sheet import Sheet, canvas_of

DOTS = (Dot(0.5, "a", 0.6), Dot(0.7, "b", 0.4, 1, 2))


@pytest.mark.parametrize("rows", [True, False])
def test_points_are_numbered_in_their_order(rows: bool) -> None:
    lines = tuple((dot.name, (dot,)) for dot in DOTS) if rows else ()
    plot = Plot("k", "t", "c", ("x", "y"), rows=lines, dots=() if rows else DOTS)
    sheet = Sheet(canvas_of(*plot_size(plot)), plot_size(plot))
    draw_plot(sheet, plot)
    drawn = [area.get_url() for area in sheet.canvas.axes[0].patches if area.get_visible()]
    assert drawn == ["dot:0", "dot:1"]
    assert dots_of(plot) == list(DOTS)


def test_long_keys_get_room() -> None:
    plot = Plot("k", "t", "c", ("x", "y"), dots=DOTS, keys=(("a" * 100, 0, 0),))
    assert plot_size(plot)[0] > 500
