from __future__ import annotations

import io

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from roledrift.report.draw.canvas import rectangle
from roledrift.report.draw.png import PngCanvas, own_style

SQUARE = [rectangle(0, 0, 1, 1)]


def painted(canvas: PngCanvas) -> np.ndarray:
    """Red, green and blue from 0 to 1; a pixel is a point."""
    return imread(io.BytesIO(canvas.png(72)))[:, :, :3]


def inked(canvas: PngCanvas) -> np.ndarray:
    return painted(canvas).sum(axis=2) < 2.5


def test_values_lie_where_the_axes_say() -> None:
    canvas = PngCanvas((100, 50))
    canvas.set_axes((10, 10, 90, 40), (0, 8), (0, 3))
    canvas.area([rectangle(2, 1, 4, 2)], ink="#000000")
    rows, columns = np.nonzero(inked(canvas))
    assert (columns.min(), columns.max()) == (30, 49)
    assert (rows.min(), rows.max()) == (20, 29)


def test_what_is_drawn_later_lies_on_top() -> None:
    canvas = PngCanvas((10, 10))
    canvas.line((0, 1), (0.5, 0.5), ink="#ff0000", width=5.0)
    canvas.area(SQUARE, ink="#0000ff")
    assert painted(canvas)[5, 5].tolist() == [0, 0, 1]


def test_lines_stop_at_the_plot_and_gaps_stay_gaps() -> None:
    canvas = PngCanvas((100, 50))
    canvas.set_axes((10, 10, 90, 40), (0, 1), (0, 1))
    canvas.line((-5, 0.4, np.nan, 0.6, 5), (0.5,) * 5, ink="#000000", width=2.0)
    seen = inked(canvas)[25]
    assert not seen[:7].any()
    assert not seen[93:].any()
    assert seen[12:40].all()
    assert not seen[46:54].any()


def test_dots_stand_at_the_points_of_a_line() -> None:
    canvas = PngCanvas((100, 50))
    canvas.line((0.5,), (0.5,), ink="#00ff00", width=1.0, dots=6.0)
    assert painted(canvas)[25, 50].tolist() == [0, 1, 0]


def test_stamps_are_circles_and_polygons() -> None:
    canvas = PngCanvas((100, 50))
    canvas.marker(10.0, (0.25, 0.5), inks=("#000000", "#000000"), frame="inside")
    triangle = ((-10, -10), (10, -10), (0, 10))
    canvas.marker(triangle, (0.75, 0.5), inks=("#000000", "#000000"), frame="inside")
    widths = inked(canvas).reshape(50, 2, 50).sum(axis=2)
    assert widths[25, 0] > widths[17, 0]
    assert widths[17, 1] < widths[25, 1] < widths[33, 1]


@pytest.mark.parametrize(("align", "side"), [("right", slice(0, 40)), ("left", slice(60, 100))])
def test_words_outside_the_plot_are_seen_in_a_picture(align: str, side: slice) -> None:
    canvas = PngCanvas((100, 50))
    canvas.set_axes((40, 10, 60, 40), (0, 1), (0, 1))
    offset = -3 if align == "right" else 3
    place = (0.0, 0.5) if align == "right" else (1.0, 0.5)
    canvas.text(place, "a\n$", ink="#000000", frame="data", offset=(offset, 0), align=align)  # type: ignore[arg-type]
    columns = inked(canvas).any(axis=0)
    assert columns[side].any()
    assert not np.delete(columns, np.arange(100)[side]).any()


def test_the_users_style_changes_nothing_and_is_left_alone() -> None:
    @own_style()
    def drawn() -> bytes:
        canvas = PngCanvas((100, 50))
        canvas.line((0, 1), (0, 1), ink="#000000", width=1.0, dash=(0, (3, 2)))
        canvas.text((0, 0.5), "word", ink="#000000", frame="inside")
        return canvas.png(72)

    plain = drawn()
    odd = {"font.size": 30, "text.usetex": True, "savefig.bbox": "tight", "lines.linestyle": ":",
           "lines.scale_dashes": False, "path.sketch": (9.0, 9.0, 9.0)}  # fmt: skip
    with matplotlib.rc_context(odd):
        assert drawn() == plain
        assert matplotlib.rcParams["font.size"] == 30
