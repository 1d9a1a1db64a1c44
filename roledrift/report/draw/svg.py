"""Panels and plots as SVG that fits a page.

There are no inline styles (a strict content security policy blocks them), known colours are CSS
variables (so one drawing reads on light and dark pages), and coordinates have no digits that nobody
sees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from html import escape

import numpy as np

from roledrift.report.draw.canvas import Align, Canvas, Ring
from roledrift.report.draw.palette import Dash, by_light
from roledrift.report.draw.panels import draw_panel, panel_height
from roledrift.report.draw.plots import Dot, Plot
from roledrift.report.draw.scatter import dots_of, draw_plot, plot_size
from roledrift.report.model import Panel
from roledrift.spans import Floats

_SIZE = (300.0, 98.0)
_STACKED = {False: ((480.0, 128.0), (480.0, 82.0)), True: ((250.0, 112.0), (250.0, 82.0))}
"""Of the first and of the following panels, on a wide and on a narrow screen."""

_ANCHORS: Mapping[Align, str] = {"left": "start", "center": "middle", "right": "end"}


def panel_svg(panel: Panel, key: str) -> str:
    """Draw one panel of small multiples; ``key`` makes its ids unique."""
    return _panel(panel, key, _SIZE)


def stacked_svg(panel: Panel, key: str, place: int, *, narrow: bool = False) -> str:
    """Draw the panel at ``place`` of a column of panels."""
    size = _STACKED[narrow][min(place, 1)]
    return _panel(panel, f"{key}{'-narrow' * narrow}", size)


def _panel(panel: Panel, key: str, size: tuple[float, float]) -> str:
    width, least = size
    return _svg((width, panel_height(panel, least)), key, partial(draw_panel, panel=panel))


def plot_svg(plot: Plot) -> str:
    """Draw a plot whose dots have names and link to their runs."""
    return _svg(plot_size(plot), plot.key, partial(draw_plot, plot=plot), dots_of(plot))


def _svg(
    size: tuple[float, float], key: str, draw: Callable[[Canvas], None], dots: Sequence[Dot] = ()
) -> str:
    canvas = SvgCanvas(size, key, dots)
    draw(canvas)
    box = " ".join(f"{side:g}" for side in size)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {box}" fill="none" '
        f'stroke-linejoin="round" aria-hidden="true">{"".join(canvas.parts)}</svg>'
    )


class SvgCanvas(Canvas):
    """A canvas that writes SVG elements and leaves the layout of words to the browser.

    Attributes:
        parts: The elements drawn so far.
    """

    def __init__(self, size: tuple[float, float], key: str, dots: Sequence[Dot]) -> None:
        self.parts: list[str] = []
        self._name = "c" + hashlib.sha256(key.encode(errors="replace")).hexdigest()[:10]
        self._named_dots = dots
        self._cut = ""
        super().__init__(size)

    def _line(
        self, points: Floats, ink: str, width: float, dash: Dash, alpha: float | None,
        *, clipped: bool,
    ) -> None:  # fmt: skip
        dashes = ""
        if not isinstance(dash, str):
            lengths = ",".join(f"{length * width:.2g}" for length in dash[1])
            dashes = f' stroke-dasharray="{lengths}"'
        how = f' stroke="{_ink(ink)}" stroke-width="{width:g}"{dashes}{_faint("stroke", alpha)}'
        self._path(_bent(points), how, clipped=clipped)

    def _dots(self, points: Floats, ink: str, radius: float, alpha: float | None) -> None:
        left, top, right, bottom = self.inside
        for x, y in np.round(points, 1).tolist():
            if left <= x <= right and top <= y <= bottom:
                self.parts.append(
                    f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{_ink(ink)}"'
                    f"{_faint('fill', alpha)}/>"
                )

    def _area(
        self, rings: Sequence[Floats], ink: str, alpha: float | None, *, clipped: bool
    ) -> None:
        gap = np.full((1, 2), np.nan)
        points = np.concatenate([part for ring in rings for part in (ring, gap)])
        self._path(points, f' fill="{_ink(ink)}"{_faint("fill", alpha)}', clipped=clipped)

    def _marker(self, ring: Floats, shape: Ring | float, inks: tuple[str, str], link: str) -> None:
        begin = end = ""
        if link:
            begin, end = _named(self._named_dots[int(link.removeprefix("dot:"))])
        how = f' fill="{_ink(inks[0])}" stroke="{_ink(inks[1])}" stroke-width="0.6" opacity="0.8"'
        if isinstance(shape, float):
            x, y = ring.tolist()
            body = f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{shape:g}"{how}/>'
        else:
            body = f'<path d="{_drawn(ring, 2)}Z"{how}/>'
        self.parts.append(f"{begin}{body}{end}")

    def _text(
        self, place: tuple[float, float], words: str, ink: str, align: Align, size: float
    ) -> None:
        x, y = place
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{_ANCHORS[align]}" '
            f'fill="{_ink(ink)}">{escape(words.lstrip(), quote=False)}</text>'
        )

    def _path(self, points: Floats, how: str, *, clipped: bool) -> None:
        self.parts.append(f'<path d="{_drawn(points, 1)}"{how}{self._clip(points) * clipped}/>')

    def _clip(self, points: Floats) -> str:
        """Keeps what goes beyond the plot from being seen."""
        left, top, right, bottom = self.inside
        with_values = points[~np.isnan(points).any(axis=1)]
        if not len(with_values) or (
            (with_values >= (left, top)).all() and (with_values <= (right, bottom)).all()
        ):
            return ""
        if not self._cut:
            self._cut = f' clip-path="url(#{self._name})"'
            self.parts.append(
                f'<clipPath id="{self._name}"><rect x="{left:.1f}" y="{top:.1f}" '
                f'width="{right - left:.1f}" height="{bottom - top:.1f}"/></clipPath>'
            )
        return self._cut


def _bent(points: Floats) -> Floats:
    """The points of a line without those inside its level stretches."""
    heights = np.round(points[:, 1], 1)
    keep = np.ones(len(points), dtype=bool)
    keep[1:-1] = (heights[1:-1] != heights[:-2]) | (heights[1:-1] != heights[2:])
    return points[keep]


def _drawn(points: Floats, digits: int) -> str:
    """The points as a path; NaN ends one stretch, and the next begins."""
    parts, pen = [], "M"
    for x, y in np.round(points, digits).tolist():
        if x != x or y != y:
            pen = "M"
            continue
        parts.append(f"{pen}{x:g} {y:g}")
        pen = "L"
    return "".join(parts)


def _named(dot: Dot) -> tuple[str, str]:
    """The element around a dot: a link if it has one, with its name for those who point at it."""
    title = f"<title>{escape(dot.name)}</title>"
    return (
        (f'<a href="{escape(dot.href)}">{title}', "</a>") if dot.href else (f"<g>{title}", "</g>")
    )


def _faint(what: str, alpha: float | None) -> str:
    return "" if alpha is None else f' {what}-opacity="{alpha:g}"'


def _ink(colour: str) -> str:
    return _inks().get(colour, colour)


@cache
def _inks() -> dict[str, str]:
    return by_light()
