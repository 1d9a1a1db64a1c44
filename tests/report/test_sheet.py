from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

from roledrift.report.sheet import Sheet, canvas_of, outlines, own_style, rectangles


def visible(sheet: Sheet) -> int:
    return sum(artist.get_visible() for artist in (*lines(sheet), *sheet.canvas.axes[0].texts))


def lines(sheet: Sheet) -> list[matplotlib.lines.Line2D]:
    return list(sheet.canvas.axes[0].lines)


def test_a_second_chart_reuses_the_artists_of_the_first() -> None:
    sheet = Sheet(canvas_of(100, 50), (100, 50))
    for count in (3, 1):
        sheet.lay((10, 10, 90, 40), (0, 1), (0, 1))
        for _ in range(count):
            sheet.line((0, 1), (0, 1), ink="#000000", width=1.0)
        sheet.text((0, 0), "a\nb", ink="#000000", frame="data")
        assert visible(sheet) == count + 1
    made = lines(sheet)
    sheet.lay((10, 10, 90, 40), (0, 1), (0, 1))
    assert lines(sheet) == made
    assert visible(sheet) == 0


def test_what_is_taken_later_lies_on_top() -> None:
    sheet = Sheet(canvas_of(100, 50), (100, 50))
    sheet.lay((10, 10, 90, 40), (0, 1), (0, 1))
    sheet.line((0, 1), (0, 1), ink="#000000", width=1.0)
    sheet.area(rectangles([(0, 0, 1, 1)]), ink="#000000")
    assert lines(sheet)[0].get_zorder() < sheet.canvas.axes[0].patches[0].get_zorder()


def test_words_outside_the_plot_are_seen_in_a_picture() -> None:
    canvas = canvas_of(100, 50)
    sheet = Sheet(canvas, (100, 50))
    sheet.lay((40, 10, 90, 40), (0, 1), (0, 1))
    sheet.text((0, 0), "word", ink="#000000", frame="data", away=(-3, 0), align="right")
    agg = FigureCanvasAgg(canvas)
    agg.draw()
    assert np.asarray(agg.buffer_rgba())[:, :40, 3].any()


def test_our_style_is_left_behind() -> None:
    with matplotlib.rc_context({"font.size": 30}):
        with own_style():
            assert matplotlib.rcParams["font.size"] == 10
        assert matplotlib.rcParams["font.size"] == 30


def test_outlines_close_every_ring() -> None:
    path = outlines([((0, 0), (1, 0), (1, 1)), ((5, 5), (6, 5), (6, 6))])
    assert list(path.codes) == [1, 2, 2, 79] * 2
    assert len(rectangles([(0, 0, 1, 1), (2, 2, 3, 3)]).vertices) == 10
