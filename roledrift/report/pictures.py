"""Figures of a report as PNG, drawn with matplotlib for slides and papers.

No pyplot and no global state: every drawing has its own figure, and the user's style is left alone.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from roledrift.report.charts import draw_plot, plot_size
from roledrift.report.drawing import draw_panel
from roledrift.report.model import Block, Card, Figure, Plot, Report
from roledrift.report.palette import INKS
from roledrift.report.sheet import Sheet, canvas_of, own_style

_DPI = 160
_INK, _SOFT = INKS["ink"].light, INKS["soft"].light
_PANEL = (300.0, 140.0)
_TITLE, _NAME, _GAP = 24.0, 18.0, 12.0


def pictures(report: Report) -> Iterator[tuple[str, bytes]]:
    """File name and PNG of every figure, in the order of the page."""
    blocks = [*report.overview]
    blocks += [block for run in report.runs for section in run.sections for block in section.blocks]
    for block in _figures(blocks):
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", block.key) + ".png"
        with own_style():
            body = _figure(block) if isinstance(block, Figure) else _plot(block)
        yield name, body


def _figures(blocks: Iterable[Block]) -> Iterator[Figure | Plot]:
    for block in blocks:
        if isinstance(block, Card):
            yield from _figures(block.blocks)
        elif (isinstance(block, Figure) and block.panels) or isinstance(block, Plot):
            yield block


def _figure(figure: Figure) -> bytes:
    columns = max(figure.columns, 1)
    rows = math.ceil(len(figure.panels) / columns)
    width, height = _PANEL
    canvas = _canvas(columns * (width + _GAP) + _GAP, _TITLE + rows * (height + _NAME) + _GAP)
    _write(canvas, (_GAP, 16.0), figure.title, ink=_INK, size=10.0)
    for index, panel in enumerate(figure.panels):
        left = _GAP + index % columns * (width + _GAP)
        top = _TITLE + index // columns * (height + _NAME)
        _write(canvas, (left, top + 12.0), panel.title, ink=_SOFT, size=8.0)
        if panel.absent:
            _write(canvas, (left, top + _NAME + 30.0), "not measured", ink=_SOFT, size=8.0)
        else:
            draw_panel(Sheet(canvas, _PANEL, (left, top + _NAME)), panel)
    return _png(canvas)


def _plot(plot: Plot) -> bytes:
    width, height = plot_size(plot)
    canvas = _canvas(width + 2 * _GAP, height + _TITLE + _GAP)
    _write(canvas, (_GAP, 16.0), plot.title, ink=_INK, size=10.0)
    draw_plot(Sheet(canvas, (width, height), (_GAP, _TITLE)), plot)
    return _png(canvas)


def _canvas(width: float, height: float) -> Canvas:
    canvas = canvas_of(width, height, dots=_DPI)
    canvas.patch.set_visible(True)
    canvas.patch.set_facecolor("white")
    return canvas


def _write(
    canvas: Canvas, place: tuple[float, float], words: str, *, ink: str, size: float
) -> None:
    width, height = (72 * inches for inches in canvas.get_size_inches())
    x, y = place
    canvas.text(x / width, 1 - y / height, words, color=ink, fontsize=size)


def _png(canvas: Canvas) -> bytes:
    FigureCanvasAgg(canvas)
    buffer = io.BytesIO()
    # Without the version of matplotlib in it the same report gives the same bytes.
    canvas.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return buffer.getvalue()
