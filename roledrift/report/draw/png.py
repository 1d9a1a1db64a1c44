"""Figures of a report as PNG, drawn with matplotlib for slides and papers.

No pyplot and no global state: every picture is a figure of its own, and the user's style is left
alone.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, PathPatch, Polygon
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, Bbox, TransformedBbox

from roledrift.report.draw.canvas import Align, Canvas, Ring
from roledrift.report.draw.palette import INKS, Dash
from roledrift.report.draw.panels import draw_panel
from roledrift.report.draw.scatter import draw_plot, plot_size
from roledrift.report.model import AlertCard, Block, Figure, Plot, Report
from roledrift.spans import Floats

_DPI = 160
_INK, _SOFT = INKS["ink"].light, INKS["soft"].light
_PANEL = (300.0, 140.0)
_TITLE, _NAME, _GAP = 24.0, 18.0, 12.0
_ACROSS = 3


def figure_pngs(report: Report) -> Iterator[tuple[str, bytes]]:
    """Draw every figure in the order of the page: its file name and the PNG."""
    blocks = [*report.overview]
    blocks += [block for run in report.runs for section in run.sections for block in section.blocks]
    for block in _figures(blocks):
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", block.key) + ".png"
        yield name, _figure_png(block) if isinstance(block, Figure) else _plot_png(block)


def _figures(blocks: Iterable[Block]) -> Iterator[Figure | Plot]:
    for block in blocks:
        if isinstance(block, AlertCard):
            yield from _figures(block.blocks)
        elif (isinstance(block, Figure) and block.panels) or isinstance(block, Plot):
            yield block


@contextmanager
def own_style() -> Iterator[None]:
    """Use matplotlib's defaults whatever the user's style is, as a context or a decorator."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield


@own_style()
def _figure_png(figure: Figure) -> bytes:
    columns = 1 if figure.stacked else min(len(figure.panels), _ACROSS)
    rows = math.ceil(len(figure.panels) / columns)
    width, height = _PANEL
    canvas = PngCanvas((columns * (width + _GAP) + _GAP, _TITLE + rows * (height + _NAME) + _GAP))
    canvas.write((_GAP, 16.0), figure.title, ink=_INK, size=10.0)
    for index, panel in enumerate(figure.panels):
        left = _GAP + index % columns * (width + _GAP)
        top = _TITLE + index // columns * (height + _NAME)
        canvas.write((left, top + 12.0), panel.title, ink=_SOFT, size=8.0)
        if panel.absent:
            canvas.write((left, top + _NAME + 30.0), "not measured", ink=_SOFT, size=8.0)
        else:
            draw_panel(canvas.inset(_PANEL, (left, top + _NAME)), panel)
    return canvas.png(_DPI)


@own_style()
def _plot_png(plot: Plot) -> bytes:
    width, height = plot_size(plot)
    canvas = PngCanvas((width + 2 * _GAP, height + _TITLE + _GAP))
    canvas.write((_GAP, 16.0), plot.title, ink=_INK, size=10.0)
    draw_plot(canvas.inset((width, height), (_GAP, _TITLE)), plot)
    return canvas.png(_DPI)


class PngCanvas(Canvas):
    """A canvas on a white picture.

    Args:
        size: Width and height in points.
        at: Its top left corner on the canvas.
        figure: The matplotlib figure to draw on; None makes one of `size`.
    """

    def __init__(
        self,
        size: tuple[float, float],
        at: tuple[float, float] = (0.0, 0.0),
        figure: MatplotlibFigure | None = None,
    ) -> None:
        self._figure = (
            MatplotlibFigure(figsize=(size[0] / 72, size[1] / 72)) if figure is None else figure
        )
        # Places count downwards and are points: matplotlib counts inches upwards.
        height = self._figure.get_figheight()
        points = Affine2D().scale(1 / 72, -1 / 72).translate(0, height)
        self._here = points + self._figure.dpi_scale_trans
        super().__init__(size, at)

    def inset(self, size: tuple[float, float], at: tuple[float, float]) -> PngCanvas:
        """Make a canvas on a part of the same picture."""
        return PngCanvas(size, at, self._figure)

    def write(self, place: tuple[float, float], words: str, *, ink: str, size: float) -> None:
        """Write words at a place given from the top left corner."""
        x, down = place
        self.text(
            (0, 1), words, ink=ink, frame="inside", offset=(x, -down), align="left", size=size
        )

    def png(self, dpi: int) -> bytes:
        """Encode the picture; equal pictures give equal bytes."""
        buffer = io.BytesIO()
        # Without the version of matplotlib in it.
        nothing: Any = {"Software": None}
        self._figure.savefig(buffer, format="png", dpi=dpi, metadata=nothing, facecolor="white")
        return buffer.getvalue()

    def _draw(self, artist: Artist, *, clipped: bool = False) -> None:
        # What is drawn later lies on top.
        artist.set_zorder(len(self._figure.get_children()))
        artist.set_transform(self._here)
        self._figure.add_artist(artist)
        left, top, right, bottom = self.inside
        box = TransformedBbox(Bbox([(left, bottom), (right, top)]), self._here)
        artist.set_clip_box(box if clipped else None)

    def _line(
        self, points: Floats, ink: str, width: float, dash: Dash, alpha: float | None,
        *, clipped: bool,
    ) -> None:  # fmt: skip
        style: Any = dash  # matplotlib's own stubs leave out what its documentation allows
        line = Line2D(points[:, 0], points[:, 1], color=ink, linewidth=width, linestyle=style,
                      alpha=alpha, solid_joinstyle="round")  # fmt: skip
        self._draw(line, clipped=clipped)

    def _dots(self, points: Floats, ink: str, radius: float, alpha: float | None) -> None:
        dots = Line2D(points[:, 0], points[:, 1], linestyle="none", marker="o", color=ink,
                      markersize=2 * radius, markeredgewidth=0, alpha=alpha)  # fmt: skip
        self._draw(dots, clipped=True)

    def _area(
        self, rings: Sequence[Floats], ink: str, alpha: float | None, *, clipped: bool
    ) -> None:
        path = Path.make_compound_path(*(Path([*ring, ring[0]], closed=True) for ring in rings))
        self._draw(PathPatch(path, color=ink, linewidth=0, alpha=alpha), clipped=clipped)

    def _marker(
        self,
        ring: Floats,
        shape: Ring | float,
        inks: tuple[str, str],
        link: str,  # noqa: ARG002 - a picture has none
    ) -> None:
        how: Any = {"facecolor": inks[0], "edgecolor": inks[1], "linewidth": 0.6, "alpha": 0.8}
        if isinstance(shape, float):
            x, y = ring.tolist()
            self._draw(Circle((x, y), shape, **how))
        else:
            self._draw(Polygon(ring, **how))

    def _text(
        self, place: tuple[float, float], words: str, ink: str, align: Align, size: float
    ) -> None:
        text = Text(*place, words, color=ink, horizontalalignment=align, fontsize=size,
                    fontfamily="DejaVu Sans", usetex=False, parse_math=False)  # fmt: skip
        self._draw(text)
