"""Figures of a report as PNG, drawn with matplotlib for slides and papers.

No pyplot and no global state: every drawing has its own figure, and the user's style is left alone.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from roledrift.report.model import Block, Card, Figure, Line, Panel, Plot, Report
from roledrift.report.palette import DASHES, INKS, TONES

_DPI = 160
_INK, _SOFT, _RULE, _BAND = (INKS[name].light for name in ("ink", "soft", "rule", "band"))


def pictures(report: Report) -> Iterator[tuple[str, bytes]]:
    """File name and PNG of every figure, in the order of the page."""
    blocks = [*report.overview]
    blocks += [block for run in report.runs for section in run.sections for block in section.blocks]
    for block in _figures(blocks):
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", block.key) + ".png"
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams["text.parse_math"] = False
            yield name, _figure(block) if isinstance(block, Figure) else _plot(block)


def _figures(blocks: Iterable[Block]) -> Iterator[Figure | Plot]:
    for block in blocks:
        if isinstance(block, Card):
            yield from _figures(block.blocks)
        elif (isinstance(block, Figure) and block.panels) or isinstance(block, Plot):
            yield block


def _figure(figure: Figure) -> bytes:
    columns = max(figure.columns, 1)
    rows = math.ceil(len(figure.panels) / columns)
    canvas = Canvas(figsize=(4.2 * columns + 0.6, 2.3 * rows + 0.5), layout="constrained")
    canvas.suptitle(figure.title, fontsize=10, color=_INK, x=0.01, ha="left")
    for index, panel in enumerate(figure.panels):
        axes = canvas.add_subplot(rows, columns, index + 1)
        _panel(axes, panel)
    return _png(canvas)


def _panel(axes: Any, panel: Panel) -> None:
    _plain(axes, panel.title)
    if panel.absent:
        axes.text(0.5, 0.5, "not measured", ha="center", color=_SOFT, transform=axes.transAxes)
        return
    if panel.log:
        axes.set_yscale("log")
    if panel.baseline is not None:
        first, last = panel.baseline
        axes.axvspan(first - 0.5, last + 0.5, color=_BAND, linewidth=0, zorder=0)
    for mark in panel.marks:
        axes.axvline(mark.step, color=INKS["drift"].light, linewidth=0.9)
    for index, line in enumerate(panel.lines):
        _line(axes, line, index, log=panel.log)
    if panel.limits is not None and panel.limits[1] > panel.limits[0]:
        axes.set_ylim(*panel.limits)
    axes.set_xlim(*panel.span)
    if sum(line.style != "slot" for line in panel.lines) > 1:
        axes.legend(fontsize=6, frameon=False)


def _line(axes: Any, line: Line, index: int, *, log: bool) -> None:
    colour = TONES[line.tone].light if line.tone >= 0 else _INK
    if line.style in ("limit", "other"):
        colour = _SOFT
    how: dict[str, Any] = {"color": colour, "linewidth": 1.3, "label": line.label}
    if line.style == "slot":
        how |= {"linewidth": 0.6, "alpha": 0.5, "label": None}
    elif line.style != "main":
        how["linestyle"] = "--"
    else:
        how["linestyle"] = DASHES[index % len(DASHES)] if line.tone >= 0 and index else "-"
    axes.plot(line.steps, _fine(line.values, log=log), **how)
    if line.low and line.high:
        low, high = (_fine(edge, log=log) for edge in (line.low, line.high))
        axes.fill_between(line.steps, low, high, color=colour, alpha=0.16, linewidth=0)


def _fine(values: Sequence[float], *, log: bool) -> list[float]:
    return [v if math.isfinite(v) and (v > 0 or not log) else math.nan for v in values]


def _plot(plot: Plot) -> bytes:
    height = 0.9 + 0.24 * len(plot.rows) if plot.rows else 4.6
    canvas = Canvas(figsize=(7.0 if plot.rows else 4.8, height), layout="constrained")
    axes = canvas.add_subplot()
    _plain(axes, plot.title)
    if plot.rows:
        for index, (_, dots) in enumerate(plot.rows):
            for dot in dots:
                axes.plot(dot.x, index, "o", color=TONES[dot.tone % len(TONES)].light, markersize=4)
        axes.set_yticks(range(len(plot.rows)), [label for label, _ in plot.rows])
        axes.invert_yaxis()
        if plot.log:
            axes.set_xscale("log")
        if plot.zero:
            axes.axvline(0, color=_SOFT, linewidth=0.8)
    else:
        for dot in plot.dots:
            marker = "osD^"[dot.shape % 4]
            colour = TONES[dot.tone % len(TONES)].light
            axes.plot(dot.x, dot.y, marker, color=colour, markersize=2 * dot.size)
        if plot.diagonal and plot.dots:
            ends = [v for dot in plot.dots for v in (dot.x, dot.y) if math.isfinite(v)]
            axes.plot([min(ends), max(ends)], [min(ends), max(ends)], "--", color=_SOFT)
    axes.set_xlabel(plot.axes[0], fontsize=8, color=_SOFT)
    axes.set_ylabel(plot.axes[1], fontsize=8, color=_SOFT)
    return _png(canvas)


def _plain(axes: Any, title: str) -> None:
    axes.set_title(title, fontsize=8, color=_SOFT, loc="left")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_RULE)
    axes.tick_params(colors=_SOFT, labelsize=7, length=0)
    axes.grid(axis="y", color=_RULE, linewidth=0.6)


def _png(canvas: Canvas) -> bytes:
    FigureCanvasAgg(canvas)
    buffer = io.BytesIO()
    # Without the version of matplotlib in it the same report gives the same bytes.
    canvas.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return buffer.getvalue()
