"""A drawing area that hands lines, areas and words to one of matplotlib's renderers.

Of the time matplotlib takes for a small chart nearly all goes into figures, axes, ticks and
artists. A sheet does without them: it knows where values lie, and the renderer writes SVG or paints
pixels. No pyplot and no global state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal, cast

import matplotlib
import numpy as np
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, Bbox, IdentityTransform

from roledrift.report.draw.palette import Dash

_SPILL = 2.0
_LONG = 128
# One font of matplotlib's own: on a page the browser picks the font anyway.
_FONT = "DejaVu Sans"
_OWN: Mapping[Any, Any] = {
    "svg.fonttype": "none",
    "svg.id": None,
    "text.usetex": False,
    "text.antialiased": True,
    "text.hinting": "force_autohint",
    "text.hinting_factor": 8,
    "path.sketch": None,
    "path.effects": [],
}
"""Settings that renderers look at, so that the user's style does not matter."""

Align = Literal["left", "center", "right"]


@contextmanager
def own_style(salt: str = "") -> Iterator[None]:
    """Our settings for renderers, ``salt`` in their ids; the user's are restored afterwards.

    Unlike ``matplotlib.rc_context`` it does not copy hundreds of settings to change a few.
    """
    now = matplotlib.rcParams
    # Setting one checks it, which takes a while: most are as we want them already.
    ours = {
        name: value for name, value in (*_OWN.items(), ("svg.hashsalt", salt)) if now[name] != value
    }
    before = {name: now[name] for name in ours}
    matplotlib.rcParams.update(ours)
    try:
        yield
    finally:
        matplotlib.rcParams.update(before)


class Sheet:
    """Draws one chart; lengths are points (1/72 inch).

    Places are given in one of these frames: ``data``; ``over`` (data across, 0 to 1 upwards);
    ``beside`` (0 to 1 across, data upwards); ``inside`` (0 to 1 both ways).

    Attributes:
        size: Width and height.
        renderer: What it draws with.
        box: Left, top, right, bottom of the plot, from the top left corner of the sheet.
    """

    _exact = True

    def __init__(
        self,
        renderer: RendererBase,
        size: tuple[float, float],
        at: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """Make an empty sheet.

        Args:
            renderer: What it draws with; may hold other sheets.
            size: Width and height.
            at: Its top left corner, from that of the renderer.
        """
        self.size = size
        self.renderer = renderer
        self._scale = float(cast(Any, renderer.points_to_pixels(1.0)))
        self._height = float(renderer.get_canvas_width_height()[1])
        self._at = at
        self.lay((0.0, 0.0, *size), (0.0, 1.0), (0.0, 1.0))

    def lay(
        self,
        box: tuple[float, float, float, float],
        across: tuple[float, float],
        up: tuple[float, float],
    ) -> None:
        """Say where the plot lies and which values its edges have."""
        self.box = box
        left, top, right, bottom = box
        x, y = self._at
        scale, height = self._scale, self._height
        # Values to pixels, which count upwards: pixel = origin + slope * value.
        start, width = (x + left) * scale, (right - left) * scale
        floor, rise = height - (y + bottom) * scale, (bottom - top) * scale
        self._across = {True: _axis(start, width, *across), False: (start, width)}
        self._up = {True: _axis(floor, rise, *up), False: (floor, rise)}
        # Lines along an edge of the plot keep their width.
        spill = _SPILL * scale
        self._inside = Bbox.from_extents(
            start - spill, floor - spill, start + width + spill, floor + rise + spill
        )

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
        points = self._pixels(np.column_stack((x, y)), frame)
        path = Path(points)
        if len(points) > _LONG:
            path.should_simplify, path.simplify_threshold = True, 1 / 9
        gc = self._pen(ink, width, alpha, clipped=frame == "data")
        if isinstance(dash, str):
            gc.set_capstyle("projecting")
        else:
            gc.set_dashes(dash[0], [length * width * self._scale for length in dash[1]])
        self.renderer.draw_path(gc, path, _HERE)
        gc.restore()
        if dots:
            fill = self._pen(ink, 0.0, alpha, clipped=frame == "data")
            radius = Affine2D().scale(dots / 2 * self._scale)
            self.renderer.draw_markers(fill, _CIRCLE, radius, path, _HERE, fill.get_rgb())
            fill.restore()

    def area(
        self,
        outline: Path,
        *,
        ink: str,
        alpha: float | None = None,
        frame: str = "data",
    ) -> None:
        """A filled outline; in the frame ``data`` it is clipped to the plot."""
        gc = self._pen(ink, 0.0, alpha, clipped=frame == "data")
        path = Path(self._pixels(outline.vertices, frame), outline.codes)
        self.renderer.draw_path(gc, path, _HERE, gc.get_rgb())
        gc.restore()

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
        fill = self._pen(inks[0], 0.0, None, clipped=False).get_rgb()
        gc = self._pen(inks[1], 0.6, 0.8, clipped=False)
        gc.set_url(link or None)
        middle = self._pixels(np.array([place]), frame)
        path = Path(np.asarray(shape.vertices) * self._scale + middle, shape.codes)
        self.renderer.draw_path(gc, path, _HERE, fill)
        gc.restore()

    def text(
        self,
        place: tuple[float, float],
        words: str,
        *,
        ink: str,
        frame: str,
        away: tuple[float, float] = (0.0, 0.0),
        align: Align = "center",
        size: float = 7.5,
    ) -> None:
        """``words`` with their baseline at ``place``, moved ``away`` to the right and upwards."""
        (x, width), (y, height) = self._axes_of(frame)
        x += width * place[0] + away[0] * self._scale
        y += height * place[1] + away[1] * self._scale
        words = words.replace("\n", " ")
        if words:
            self._write((x, self._height - y), words, ink=ink, align=align, size=size)

    def _write(
        self, place: tuple[float, float], words: str, *, ink: str, align: Align, size: float
    ) -> None:
        """Words at a place in pixels from the top left corner."""
        gc = self._pen(ink, 0.0, None, clipped=False)
        font = _font(size)
        wide, _, _ = self.renderer.get_text_width_height_descent(words, font, False)
        left = place[0] - {"left": 0.0, "center": wide / 2, "right": wide}[align]
        self.renderer.draw_text(gc, left, place[1], words, font, 0)
        gc.restore()

    def _axes_of(self, frame: str) -> tuple[tuple[float, float], tuple[float, float]]:
        """Origin and slope across and up."""
        return self._across[frame in _ACROSS], self._up[frame in _UP]

    def _pixels(self, points: Any, frame: str) -> Any:
        """Points in a frame, ``(n, 2)``, as pixels from the lower left corner."""
        (x, width), (y, height) = self._axes_of(frame)
        found = np.asarray(points, dtype=float) * (width, height) + (x, y)
        # Rounded here, for shortening thousands of numbers in the finished SVG takes longer.
        return found if self._exact else np.round(found, 1 if frame == "data" else 2)

    def _pen(
        self, ink: str, width: float, alpha: float | None, *, clipped: bool
    ) -> GraphicsContextBase:
        gc = self.renderer.new_gc()
        gc.set_foreground(ink)
        gc.set_linewidth(width * self._scale)
        gc.set_joinstyle("round")
        if alpha is not None:
            gc.set_alpha(alpha)
        if clipped:
            gc.set_clip_rectangle(self._inside)
        return gc


_HERE = IdentityTransform()
_CIRCLE = Path.unit_circle()
_ACROSS, _UP = ("data", "over"), ("data", "beside")


def _axis(origin: float, length: float, low: float, high: float) -> tuple[float, float]:
    slope = length / (high - low)
    return origin - slope * low, slope


@lru_cache(maxsize=32)
def _font(size: float) -> FontProperties:
    return FontProperties(
        family=_FONT, size=size, style="normal", variant="normal", weight="normal",
        stretch="normal", math_fontfamily="dejavusans",
    )  # fmt: skip


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
