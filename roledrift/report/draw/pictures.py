"""Figures of a report as PNG, drawn with matplotlib for slides and papers.

No pyplot and no global state: every drawing has its own renderer, and the user's style is left
alone.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.image import imsave

from roledrift.report.draw.charts import draw_plot, plot_size
from roledrift.report.draw.drawing import draw_panel
from roledrift.report.draw.palette import INKS
from roledrift.report.draw.sheet import Sheet, own_style, rectangles
from roledrift.report.model import Block, Card, Figure, Plot, Report

_DPI = 160
_INK, _SOFT = INKS["ink"].light, INKS["soft"].light
_PANEL = (300.0, 140.0)
_TITLE, _NAME, _GAP = 24.0, 18.0, 12.0
_ACROSS = 3


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
    columns = 1 if figure.stacked else min(len(figure.panels), _ACROSS)
    rows = math.ceil(len(figure.panels) / columns)
    width, height = _PANEL
    size = (columns * (width + _GAP) + _GAP, _TITLE + rows * (height + _NAME) + _GAP)
    renderer, sheet = page(size)
    _write(sheet, (_GAP, 16.0), figure.title, ink=_INK, size=10.0)
    for index, panel in enumerate(figure.panels):
        left = _GAP + index % columns * (width + _GAP)
        top = _TITLE + index // columns * (height + _NAME)
        _write(sheet, (left, top + 12.0), panel.title, ink=_SOFT, size=8.0)
        if panel.absent:
            _write(sheet, (left, top + _NAME + 30.0), "not measured", ink=_SOFT, size=8.0)
        else:
            draw_panel(Sheet(renderer, _PANEL, (left, top + _NAME)), panel)
    return finished(renderer)


def _plot(plot: Plot) -> bytes:
    width, height = plot_size(plot)
    renderer, sheet = page((width + 2 * _GAP, height + _TITLE + _GAP))
    _write(sheet, (_GAP, 16.0), plot.title, ink=_INK, size=10.0)
    draw_plot(Sheet(renderer, (width, height), (_GAP, _TITLE)), plot)
    return finished(renderer)


def page(size: tuple[float, float], dpi: int = _DPI) -> tuple[RendererAgg, Sheet]:
    """A white picture of a size in points, and a sheet that covers it."""
    width, height = (math.ceil(side * dpi / 72) for side in size)
    renderer = RendererAgg(width, height, dpi)  # type: ignore[no-untyped-call]
    sheet = Sheet(renderer, size)
    sheet.area(rectangles([(-1, -1, 2, 2)]), ink="white", frame="inside")
    return renderer, sheet


def _write(sheet: Sheet, place: tuple[float, float], words: str, *, ink: str, size: float) -> None:
    x, y = place
    sheet.text((0, 1), words, ink=ink, frame="inside", away=(x, -y), align="left", size=size)


def finished(renderer: RendererAgg, dpi: int = _DPI) -> bytes:
    """A picture as PNG."""
    buffer = io.BytesIO()
    # Without the version of matplotlib in it the same report gives the same bytes.
    nothing: Any = {"Software": None}
    pixels = np.asarray(renderer.buffer_rgba())  # type: ignore[no-untyped-call]
    imsave(buffer, pixels, format="png", dpi=dpi, metadata=nothing)
    return buffer.getvalue()
