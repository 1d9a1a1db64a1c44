"""Draw plots: points on labelled lines, or points against points."""

from __future__ import annotations

import math

from roledrift.report.draw.canvas import Canvas, Ring
from roledrift.report.draw.palette import INKS, TONES
from roledrift.report.draw.panels import log_ticks, padded_range, value_ticks
from roledrift.report.draw.plots import SHAPES, Dot, Plot
from roledrift.report.numbers import number

_INK, _SOFT, _RULE, _PAGE = (INKS[name].light for name in ("ink", "soft", "rule", "page"))
_SIZE = 9.0
_PITCH = 17.0
_KEYS = 18.0
_OUTLINES = {
    "square": ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)),
    "diamond": ((0.0, 1.3), (1.0, 0.0), (0.0, -1.3), (-1.0, 0.0)),
    "triangle": ((0.0, 1.2), (1.2, -1.0), (-1.2, -1.0)),
}


def plot_size(plot: Plot) -> tuple[float, float]:
    """Width and height of a plot in points."""
    width, height = (660.0, 36.0 + _PITCH * len(plot.rows)) if plot.rows else (330.0, 330.0)
    width = max(width, *(_key_width(label) + 60 for label, _, _ in plot.keys), 0.0)
    return width, height + _KEYS * len(_key_rows(plot, width))


def draw_plot(canvas: Canvas, plot: Plot) -> None:
    """Draw ``plot`` without its title; ``link="dot:n"`` marks its n-th dot."""
    if plot.rows:
        _rows(canvas, plot)
    else:
        _against(canvas, plot)
    _keys(canvas, plot)


def dots_of(plot: Plot) -> list[Dot]:
    """All dots of a plot, in the order of their numbers."""
    return [dot for _, dots in plot.rows for dot in dots] if plot.rows else list(plot.dots)


def _rows(canvas: Canvas, plot: Plot) -> None:
    def drawable(value: float) -> bool:
        return math.isfinite(value) and (value > 0 or not plot.log)

    values = [dot.x for dot in dots_of(plot) if drawable(dot.x)]
    low, high = padded_range(values + [0.0] * plot.zero, log=plot.log, share=0.06)

    def place(value: float) -> float:
        return math.log10(value) if plot.log else value

    rows = len(plot.rows)
    box = (200.0, 6.0, 648.0, 6.0 + _PITCH * rows)
    canvas.set_axes(box, (place(low), place(high)), (rows, 0))
    for tick in log_ticks(low, high) if plot.log else value_ticks(low, high, 6):
        _upright(canvas, place(tick), _RULE)
        canvas.text((place(tick), 0), number(tick), ink=_SOFT, frame="over", offset=(0, -11),
                   size=_SIZE)  # fmt: skip
    if plot.zero and not plot.log:
        _upright(canvas, 0.0, _SOFT)
    index = 0
    for row, (label, dots) in enumerate(plot.rows):
        canvas.text((0, row + 0.5), label, ink=_INK, frame="beside", offset=(-8, -3), align="right",
                   size=_SIZE)  # fmt: skip
        for dot in dots:
            if drawable(dot.x):
                _dot(canvas, dot, (place(dot.x), row + 0.5), index)
            index += 1
    canvas.text((0.5, 0), plot.axes[0], ink=_SOFT, frame="inside", offset=(0, -24), size=_SIZE)


def _upright(canvas: Canvas, at: float, ink: str) -> None:
    canvas.line((at, at), (0, 1), ink=ink, width=0.7, frame="over")


def _against(canvas: Canvas, plot: Plot) -> None:
    values = [v for dot in plot.dots for v in (dot.x, dot.y) if math.isfinite(v)]
    low, high = padded_range(values, log=False, share=0.06)
    canvas.set_axes((44.0, 8.0, 322.0, 296.0), (low, high), (low, high))
    for tick in value_ticks(low, high, 5):
        canvas.line((0, 1), (tick, tick), ink=_RULE, width=0.7, frame="beside")
        canvas.text((tick, 0), number(tick), ink=_SOFT, frame="over", offset=(0, -12), size=_SIZE)
        canvas.text((0, tick), number(tick), ink=_SOFT, frame="beside", offset=(-4, -3),
                   align="right", size=_SIZE)  # fmt: skip
    if plot.diagonal:
        canvas.line((0, 1), (0, 1), ink=_SOFT, width=0.7, dash=(0, (5.7, 4.3)), frame="inside")
    for index, dot in enumerate(plot.dots):
        if math.isfinite(dot.x) and math.isfinite(dot.y):
            _dot(canvas, dot, (dot.x, dot.y), index)
    canvas.text((0.5, 0), plot.axes[0], ink=_SOFT, frame="inside", offset=(0, -26), size=_SIZE)
    canvas.text((0, 1), plot.axes[1], ink=_SOFT, frame="inside", offset=(0, 1), align="left",
               size=_SIZE)  # fmt: skip


def _dot(canvas: Canvas, dot: Dot, place: tuple[float, float], index: int) -> None:
    inks = (TONES[dot.tone % len(TONES)].light, _PAGE)
    canvas.marker(_shape(dot.shape, dot.size), place, inks=inks, link=f"dot:{index}")


def _shape(shape: int, size: float) -> Ring | float:
    name = SHAPES[shape % len(SHAPES)]
    if name == "circle":
        return float(size)
    return [(x * size, y * size) for x, y in _OUTLINES[name]]


def _keys(canvas: Canvas, plot: Plot) -> None:
    left, _, right, bottom = canvas.box
    rise = bottom - canvas.box[1]
    rows = _key_rows(plot, canvas.size[0])
    for row, keys in enumerate(rows):
        at = 0.0
        down = (canvas.size[1] - _KEYS * (len(rows) - row) + 12 - bottom) / rise
        for label, tone, shape in keys:
            ink = TONES[tone % len(TONES)].light if tone >= 0 else _SOFT
            x = (at + 4) / (right - left)
            stamp = _shape(shape, 3.2)
            canvas.marker(stamp, (x, 3 / rise - down), inks=(ink, _PAGE), frame="inside")
            canvas.text((x, -down), label, ink=_SOFT, frame="inside", offset=(7, 0), align="left",
                       size=_SIZE)  # fmt: skip
            at += _key_width(label)


def _key_width(label: str) -> float:
    return 24 + 5.2 * len(label)


def _key_rows(plot: Plot, width: float) -> list[list[tuple[str, int, int]]]:
    """The keys in as many rows as they need."""
    rows: list[list[tuple[str, int, int]]] = []
    room = 0.0
    for key in plot.keys:
        if not rows or room < _key_width(key[0]):
            rows.append([])
            room = width - 60
        rows[-1].append(key)
        room -= _key_width(key[0])
    return rows
