"""A drawing area that is set up once and drawn on again and again, with matplotlib.

Of the time matplotlib takes for a small chart nearly all goes into making figures, axes, ticks and
artists. A sheet keeps them: lines, areas and texts are taken from what earlier charts left, and the
axes have no ticks of their own. No pyplot and no global state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar, cast

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import (
    Affine2D,
    IdentityTransform,
    ScaledTranslation,
    blended_transform_factory,
)

from roledrift.report.palette import Dash

_POINTS = 72.0
_MORE = 12
_SPILL = 2.0
_OWN: dict[Any, Any] = {"text.parse_math": False, "svg.fonttype": "none"}
_Artist = TypeVar("_Artist", Line2D, PathPatch, Text)


@contextmanager
def own_style() -> Iterator[None]:
    """Defaults instead of the user's style, and no mathtext in names; restored afterwards."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_OWN)
        yield


def canvas_of(width: float, height: float, dots: float = _POINTS) -> Canvas:
    """An empty, transparent figure; ``width`` and ``height`` in points, ``dots`` per inch."""
    canvas = Canvas(figsize=(width / _POINTS, height / _POINTS), dpi=dots)
    canvas.patch.set_visible(False)
    return canvas


class Sheet:
    """Artists for one chart after the other; lengths are points (1/72 inch).

    Places are given in one of these frames: ``data``; ``over`` (data across, 0 to 1 upwards);
    ``beside`` (0 to 1 across, data upwards); ``inside`` (0 to 1 both ways).

    Attributes:
        canvas: The figure that it is on; may hold other sheets.
        box: Left, top, right, bottom of the plot, from the top left corner of the sheet.
    """

    def __init__(
        self,
        canvas: Canvas,
        size: tuple[float, float],
        at: tuple[float, float] = (0.0, 0.0),
        *,
        measured: bool = True,
    ) -> None:
        """Make an empty sheet.

        Args:
            canvas: Its figure.
            size: Width and height.
            at: Its top left corner, from that of the figure.
            measured: Whether texts are laid out here; not for SVG at 72 dots per inch, where the
                browser does it and coordinates are rounded to tenths.
        """
        self.canvas = canvas
        self.size = size
        self.box = (0.0, 0.0, *size)
        self._at = at
        self._measured = measured
        self._here = IdentityTransform()
        self._new_text = _new_text if measured else _new_words
        self._axes: Axes = canvas.add_axes((0, 0, 1, 1))
        self._axes.set_axis_off()
        self._axes.patch.set_visible(False)
        self._lines: list[Line2D] = []
        self._areas: list[PathPatch] = []
        self._texts: list[Text] = []
        self._used = {"lines": 0, "areas": 0, "texts": 0}
        axes = self._axes
        self._frames: dict[str, Any] = {
            "data": axes.transData,
            "over": blended_transform_factory(axes.transData, axes.transAxes),
            "beside": blended_transform_factory(axes.transAxes, axes.transData),
            "inside": axes.transAxes,
        }
        self._inside: Any = axes.bbox
        self._moved: dict[tuple[str, float, float], Any] = {}

    def lay(
        self,
        box: tuple[float, float, float, float],
        across: tuple[float, float],
        up: tuple[float, float],
    ) -> None:
        """Clear the sheet and say where the plot lies and which values its edges have."""
        for kind in (self._lines, self._areas, self._texts):
            for artist in kind:
                artist.set_visible(False)
        self._used = {"lines": 0, "areas": 0, "texts": 0}
        self.box = box
        left, top, right, bottom = box
        width, height = (_POINTS * inches for inches in self.canvas.get_size_inches())
        x, y = self._at
        self._axes.set_position(
            (
                (x + left) / width,
                1 - (y + bottom) / height,
                (right - left) / width,
                (bottom - top) / height,
            )
        )
        # Lines along an edge of the plot keep their width.
        self._inside = self._axes.bbox.padded(_SPILL * self.canvas.dpi / _POINTS)
        self._axes.set_xlim(*across)
        self._axes.set_ylim(*up)

    def line(
        self,
        x: Any,
        y: Any,
        *,
        ink: str,
        width: float,
        dash: Dash = "-",
        alpha: float | None = None,
        frame: str = "data",
        dots: float = 0.0,
    ) -> None:
        """A polyline, which NaN interrupts; ``dots`` is the diameter of dots at its points.

        In the frame ``data`` it is clipped to the plot.
        """
        artist = self._take("lines", self._lines, lambda: Line2D((), ()))
        transform = self._frames[frame]
        if not self._measured and frame == "data":
            # Rounded here, for shortening thousands of numbers in the finished SVG takes longer.
            x, y = np.round(transform.transform(np.column_stack((x, y))), 1).T
            transform = self._here
        artist.set_data(x, y)
        artist.set_color(ink)
        artist.set_linewidth(width)
        artist.set_linestyle(cast(Any, dash))
        artist.set_alpha(alpha)
        artist.set_marker("o" if dots else "None")
        artist.set_markersize(dots)
        artist.set_markeredgecolor("none")
        artist.set_transform(transform)
        artist.set_clip_box(self._inside if frame == "data" else None)

    def area(
        self,
        outline: Path,
        *,
        ink: str,
        alpha: float | None = None,
        frame: str = "data",
    ) -> None:
        """A filled outline; in the frame ``data`` it is clipped to the plot."""
        artist = self._take("areas", self._areas, _new_area)
        artist.set_path(outline)
        artist.set_facecolor(ink)
        artist.set_linewidth(0.0)
        artist.set_edgecolor("none")
        artist.set_alpha(alpha)
        artist.set_url(None)
        artist.set_transform(self._frames[frame])
        artist.set_clip_box(self._inside if frame == "data" else None)

    def stamp(
        self,
        shape: Path,
        place: tuple[float, float],
        *,
        inks: tuple[str, str],
        frame: str = "data",
        link: str = "",
    ) -> None:
        """A small ``shape``, drawn in points around ``place``; ``inks``: inside and edge."""
        artist = self._take("areas", self._areas, _new_area)
        artist.set_path(shape)
        artist.set_facecolor(inks[0])
        artist.set_edgecolor(inks[1])
        artist.set_linewidth(0.6)
        artist.set_alpha(0.8)
        artist.set_url(link or None)
        points = Affine2D().scale(1 / _POINTS) + self.canvas.dpi_scale_trans
        artist.set_transform(points + ScaledTranslation(*place, self._frames[frame]))
        artist.set_clip_box(None)

    def text(
        self,
        place: tuple[float, float],
        words: str,
        *,
        ink: str,
        frame: str,
        away: tuple[float, float] = (0.0, 0.0),
        align: Literal["left", "center", "right"] = "center",
        size: float = 7.5,
    ) -> None:
        """``words`` with their baseline at ``place``, moved ``away`` to the right and upwards."""
        artist = self._take("texts", self._texts, self._new_text)
        artist.set_position(place)
        artist.set_text(words.replace("\n", " "))
        artist.set_color(ink)
        artist.set_fontsize(size)
        artist.set_horizontalalignment(align)
        key = (frame, *away)
        if key not in self._moved:
            shift = ScaledTranslation(
                away[0] / _POINTS, away[1] / _POINTS, self.canvas.dpi_scale_trans
            )
            self._moved[key] = self._frames[frame] + shift
        artist.set_transform(self._moved[key])

    def _take(self, kind: str, pool: list[_Artist], make: Callable[[], _Artist]) -> _Artist:
        """The next unused artist, drawn after those taken before."""
        index = self._used[kind]
        if index == len(pool):
            # Several at once: the defaults that keep the user's style out take long to set.
            with own_style():
                more = [make() for _ in range(_MORE)]
            for artist in more:
                artist.set_visible(False)
                self._axes.add_artist(artist)
            pool += more
        artist = pool[index]
        self._used[kind] = index + 1
        artist.set_zorder(sum(self._used.values()))
        artist.set_visible(True)
        return artist


def _new_area() -> PathPatch:
    return PathPatch(Path([(0.0, 0.0)]), linewidth=0.0)


class _Words(Text):
    """Text that is handed on unmeasured: the browser aligns it, and measuring takes longest."""

    def draw(self, renderer: Any) -> None:
        """Draw one line at its place."""
        if not self.get_visible() or not self.get_text():
            return
        x, y = self.get_transform().transform(self.get_unitless_position())
        gc = renderer.new_gc()
        gc.set_foreground(self.get_color())
        _, height = renderer.get_canvas_width_height()
        font = self.get_fontproperties()
        renderer.draw_text(gc, x, height - y, self.get_text(), font, 0, ismath=False, mtext=self)
        gc.restore()
        self.stale = False


# One font of matplotlib's own: on a page the browser picks the font anyway.
_HOW: dict[str, Any] = {"family": "DejaVu Sans", "va": "baseline", "clip_on": False}


def _new_text() -> Text:
    return Text(0.0, 0.0, "", **_HOW)


def _new_words() -> Text:
    return _Words(0.0, 0.0, "", **_HOW)


def rectangles(sides: Sequence[tuple[float, float, float, float]]) -> Path:
    """One outline of several rectangles: left, lower, right, upper."""
    return outlines([((a, low), (b, low), (b, high), (a, high)) for a, low, b, high in sides])


def outlines(rings: Sequence[Any]) -> Path:
    """One path of several closed polygons, each a sequence of corners."""
    vertices = np.concatenate([part for ring in rings for part in (ring, ring[:1])])
    codes: list[Any] = []
    for ring in rings:
        codes += [Path.MOVETO, *[Path.LINETO] * (len(ring) - 1), Path.CLOSEPOLY]
    return Path(vertices, codes)
