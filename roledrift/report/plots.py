"""Charts whose horizontal axis is not the step: points on lines, and points against points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import ClassVar

from roledrift.report.cells import Table
from roledrift.report.numbers import number
from roledrift.report.palette import TONES
from roledrift.report.ticks import linear, logarithmic

SHAPES = ("circle", "square", "diamond", "triangle")


@dataclass(frozen=True, slots=True)
class Dot:
    """One point.

    Attributes:
        y: For points against points; on a line, the line gives the height.
        name: What it is, said when it is pointed at.
        tone: Index of its colour; likewise ``shape``.
        size: Radius.
        href: Link to its run.
    """

    x: float
    name: str
    y: float = math.nan
    tone: int = 0
    shape: int = 0
    size: float = 3.0
    href: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """Points on labelled lines (``rows``), or against each other (no rows).

    Attributes:
        rows: Label and points of each line; empty for points against points.
        dots: The points against points.
        axes: What stands on the horizontal and the vertical axis.
        keys: What colours and shapes mean: label, tone, shape.
        zero: Draw the vertical line at 0; ``diagonal``: the line of equal values.
    """

    kind: ClassVar[str] = "plot"
    key: str
    title: str
    caption: str
    axes: tuple[str, str]
    rows: tuple[tuple[str, tuple[Dot, ...]], ...] = ()
    dots: tuple[Dot, ...] = ()
    keys: tuple[tuple[str, int, int], ...] = ()
    log: bool = False
    zero: bool = False
    diagonal: bool = False
    table: Table | None = None


def plot_svg(plot: Plot) -> str:
    """The plot as SVG; colours are CSS variables."""
    return _lines(plot) if plot.rows else _against(plot)


def _ends(values: Sequence[float], *, log: bool, zero: bool) -> tuple[float, float]:
    fine = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    if zero:
        fine.append(0.0)
    if not fine:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = min(fine), max(fine)
    if log:
        return low / 1.3, high * 1.3
    room = 0.06 * (high - low) or 0.05 * abs(high) or 0.05
    return low - room, high + room


def _lines(plot: Plot) -> str:
    width, left, pitch, top = 660.0, 200.0, 17.0, 6.0
    bottom = top + pitch * len(plot.rows)
    values = [dot.x for _, dots in plot.rows for dot in dots]
    low, high = _ends(values, log=plot.log, zero=plot.zero)

    def x(value: float) -> float:
        if plot.log:
            return left + (width - left - 12) * math.log(value / low) / math.log(high / low)
        return left + (width - left - 12) * (value - low) / (high - low)

    parts = []
    ticks = logarithmic(low, high) if plot.log else linear(low, high, 6)
    for tick in ticks:
        parts.append(f'<path d="M{x(tick):.1f} {top}V{bottom:.1f}" stroke="var(--rule)"/>')
        parts.append(_text(x(tick), bottom + 11, number(tick), "soft"))
    if plot.zero:
        parts.append(f'<path d="M{x(0):.1f} {top}V{bottom:.1f}" stroke="var(--soft)"/>')
    for index, (label, dots) in enumerate(plot.rows):
        y = top + pitch * (index + 0.5)
        parts.append(_text(left - 8, y + 3, label, "ink", "end"))
        parts += [_dot(dot, x(dot.x), y) for dot in dots if _fine(dot.x, log=plot.log)]
    parts.append(_text((left + width) / 2, bottom + 24, plot.axes[0], "soft"))
    return _svg(width, bottom + 30, [*parts, *_keys(plot, left, bottom + 42)], plot)


def _against(plot: Plot) -> str:
    size, left, top = 330.0, 44.0, 8.0
    right, bottom = size - 8, size - 34
    low, high = _ends([v for dot in plot.dots for v in (dot.x, dot.y)], log=False, zero=False)

    def place(dot: Dot) -> tuple[float, float]:
        return (
            left + (right - left) * (dot.x - low) / (high - low),
            bottom - (bottom - top) * (dot.y - low) / (high - low),
        )

    parts = []
    for tick in linear(low, high, 5):
        at, up = place(Dot(tick, "", tick))
        parts.append(f'<path d="M{left} {up:.1f}H{right}" stroke="var(--rule)"/>')
        parts += [_text(at, bottom + 12, number(tick), "soft")]
        parts += [_text(left - 4, up + 3, number(tick), "soft", "end")]
    if plot.diagonal:
        line = f"M{left} {bottom}L{right} {top}"
        parts.append(f'<path d="{line}" stroke="var(--soft)" stroke-dasharray="4 3"/>')
    for dot in plot.dots:
        if math.isfinite(dot.x) and math.isfinite(dot.y):
            parts.append(_dot(dot, *place(dot)))
    parts.append(_text((left + right) / 2, bottom + 26, plot.axes[0], "soft"))
    parts.append(_text(left, top - 1, plot.axes[1], "soft", "start"))
    return _svg(size, size, [*parts, *_keys(plot, left, size + 10)], plot)


def _fine(value: float, *, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


def _dot(dot: Dot, x: float, y: float) -> str:
    body = _shape(dot.shape, x, y, dot.size, f"var(--tone-{dot.tone % len(TONES)})")
    named = f"<g>{body}<title>{escape(dot.name)}</title></g>"
    return f'<a href="{escape(dot.href)}">{named}</a>' if dot.href else named


def _shape(shape: int, x: float, y: float, size: float, colour: str) -> str:
    how = f'fill="{colour}" fill-opacity=".8" stroke="var(--page)" stroke-width=".6"'
    r = size
    if SHAPES[shape % len(SHAPES)] == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" {how}/>'
    paths = {
        "square": f"M{x - r:.1f} {y - r:.1f}h{2 * r:.1f}v{2 * r:.1f}h{-2 * r:.1f}z",
        "diamond": f"M{x:.1f} {y - 1.3 * r:.1f}l{r:.1f} {1.3 * r:.1f}l{-r:.1f} {1.3 * r:.1f}"
        f"l{-r:.1f} {-1.3 * r:.1f}z",
        "triangle": f"M{x:.1f} {y - 1.2 * r:.1f}l{1.2 * r:.1f} {2.2 * r:.1f}h{-2.4 * r:.1f}z",
    }
    return f'<path d="{paths[SHAPES[shape % len(SHAPES)]]}" {how}/>'


def _keys(plot: Plot, left: float, y: float) -> list[str]:
    parts, at = [], left
    for label, tone, shape in plot.keys:
        colour = f"var(--tone-{tone})" if tone >= 0 else "var(--soft)"
        parts.append(_shape(shape, at + 4, y - 3, 3.2, colour))
        parts.append(_text(at + 11, y, label, "soft", "start"))
        at += 24 + 5.2 * len(label)
    return parts


def _text(x: float, y: float, text: str, ink: str, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="9" text-anchor="{anchor}" '
        f'fill="var(--{ink})">{escape(text)}</text>'
    )


def _svg(width: float, height: float, parts: Sequence[str], plot: Plot) -> str:
    keys = 18 if plot.keys else 0
    reach = sum(24 + 5.2 * len(label) for label, _, _ in plot.keys) + 60
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {max(width, reach):.0f} '
        f'{height + keys:.0f}" fill="none" stroke-width=".7">' + "".join(parts) + "</svg>"
    )
