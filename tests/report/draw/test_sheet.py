from __future__ import annotations

import io

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.backends.backend_svg import RendererSVG

from roledrift.report.draw.sheet import Sheet, outlines, own_style, rectangles


def painted(renderer: RendererAgg) -> np.ndarray:
    return np.asarray(renderer.buffer_rgba())


def test_values_lie_where_the_axes_say() -> None:
    renderer = RendererAgg(100, 50, 72)
    sheet = Sheet(renderer, (100, 50))
    sheet.lay((10, 10, 90, 40), (0, 8), (0, 3))
    sheet.area(rectangles([(2, 1, 4, 2)]), ink="#ff0000")
    rows, columns = np.nonzero(painted(renderer)[:, :, 0] * painted(renderer)[:, :, 3])
    assert (columns.min(), columns.max()) == (30, 49)
    assert (rows.min(), rows.max()) == (20, 29)


def test_what_is_drawn_later_lies_on_top() -> None:
    renderer = RendererAgg(10, 10, 72)
    sheet = Sheet(renderer, (10, 10))
    sheet.area(rectangles([(0, 0, 1, 1)]), ink="#ff0000")
    sheet.area(rectangles([(0, 0, 1, 1)]), ink="#0000ff")
    assert painted(renderer)[5, 5].tolist() == [0, 0, 255, 255]


def test_lines_stop_at_the_plot_and_gaps_stay_gaps() -> None:
    renderer = RendererAgg(100, 50, 72)
    sheet = Sheet(renderer, (100, 50))
    sheet.lay((10, 10, 90, 40), (0, 1), (0, 1))
    sheet.line((-5, 0.4, np.nan, 0.6, 5), (0.5,) * 5, ink="#000000", width=2.0)
    seen = painted(renderer)[25, :, 3] > 0
    assert not seen[:7].any()
    assert not seen[93:].any()
    assert seen[12:40].all()
    assert not seen[46:54].any()


def test_dots_stand_at_the_points_of_a_line() -> None:
    renderer = RendererAgg(100, 50, 72)
    sheet = Sheet(renderer, (100, 50))
    sheet.line((0.5,), (0.5,), ink="#00ff00", width=1.0, dots=6.0)
    assert painted(renderer)[25, 50].tolist() == [0, 255, 0, 255]


@pytest.mark.parametrize(("align", "side"), [("right", slice(0, 40)), ("left", slice(60, 100))])
def test_words_outside_the_plot_are_seen_in_a_picture(align: str, side: slice) -> None:
    renderer = RendererAgg(100, 50, 72)
    sheet = Sheet(renderer, (100, 50))
    sheet.lay((40, 10, 60, 40), (0, 1), (0, 1))
    away = -3 if align == "right" else 3
    place = (0.0, 0.5) if align == "right" else (1.0, 0.5)
    with own_style():
        sheet.text(place, "a\nb", ink="#000000", frame="data", away=(away, 0), align=align)  # type: ignore[arg-type]
    inked = painted(renderer)[:, :, 3].any(axis=0)
    assert inked[side].any()
    assert not np.delete(inked, np.arange(100)[side]).any()


def test_a_sheet_of_many_points_is_simplified_in_svg() -> None:
    buffer = io.StringIO()
    with own_style("salt"):
        renderer = RendererSVG(100, 50, buffer)
        Sheet(renderer, (100, 50)).line(np.linspace(0, 1, 500), [0.5] * 500, ink="#000", width=1.0)
        renderer.finalize()
    assert buffer.getvalue().count("L ") < 10


def test_our_style_is_left_behind() -> None:
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "theirs"}):
        with own_style("ours"):
            assert matplotlib.rcParams["svg.fonttype"] == "none"
            assert matplotlib.rcParams["svg.hashsalt"] == "ours"
        assert matplotlib.rcParams["svg.fonttype"] == "path"
        assert matplotlib.rcParams["svg.hashsalt"] == "theirs"


def test_outlines_close_every_ring() -> None:
    path = outlines([((0, 0), (1, 0), (1, 1)), ((5, 5), (6, 5), (6, 6))])
    assert list(path.codes) == [1, 2, 2, 79] * 2
    assert len(rectangles([(0, 0, 1, 1), (2, 2, 3, 3)]).vertices) == 10
