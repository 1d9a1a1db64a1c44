"""Draw panels of curves, the same on a page and in a picture.

Everything goes onto a :class:`~roledrift.report.draw.canvas.Canvas` in the colours of a light page.
A page replaces them by its CSS variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Literal

import numpy as np

from roledrift.report.draw.canvas import Canvas, rectangle
from roledrift.report.draw.palette import DASHES, INKS, TONES, WORDS, Dash
from roledrift.report.model import Line, Panel
from roledrift.report.numbers import number

_INK, _SOFT, _RULE, _BAND, _PAGE = (
    INKS[name].light for name in ("ink", "soft", "rule", "band", "page")
)
_MARK = INKS["failing"].light
_SMALL = 7.0
_LETTER = 4.6
_NARROW_LETTER = 4.2
_NAMED = 3
_ROOM = 8.5
_NONE = np.zeros(0)


def draw_panel(canvas: Canvas, panel: Panel) -> None:
    """Draw one panel without its title; several lines are named at their right ends."""
    width, height = canvas.size
    labelled = _labelled(panel)
    edge = 0.985 * width
    most = max(int(0.25 * width / _NARROW_LETTER), 8)
    letters = max((min(len(line.label), most) for line in labelled), default=0)
    room = max(letters if len(labelled) > 1 else 0, min(panel.margin, most))
    if room:
        edge -= 10 + _NARROW_LETTER * room
    first, last = panel.span
    side = 0.015 * (last - first) or 0.5
    top = 10.0 if len(panel.marks) < 2 else 17.5
    limits = _limits(panel)
    low, high = (math.log10(edge) for edge in limits) if panel.log else limits
    canvas.set_axes(
        (33.0, top, max(edge, 90.0), height - 19.4), (first - side, last + side), (low, high)
    )
    if panel.baseline is not None:
        a, b = panel.baseline
        band = rectangle(max(a - 0.5, first - side), 0, min(b + 0.5, last + side), 1)
        canvas.area([band], ink=_BAND, frame="over")
    _axes(canvas, panel, limits)
    for mark in panel.marks:
        stroke: Dash = (0, (3, 2)) if mark.mild else "-"
        canvas.line((mark.step, mark.step), (0, 1), ink=_SOFT if mark.mild else _MARK, width=0.9,
                   frame="over", dash=stroke)  # fmt: skip
    dashed = sum(line.tone >= 0 for line in labelled) > 1
    for index, line in enumerate(panel.lines):
        dash = line.tone + index // len(TONES) if dashed and line.tone >= 0 else 0
        _line(canvas, line, (low, high), log=panel.log, dash=DASHES[dash % len(DASHES)])
    _marks(canvas, panel, per_step=(canvas.box[2] - canvas.box[0]) / (last - first + 2 * side))
    if len(labelled) > 1:
        _end_labels(canvas, labelled, (low, high), log=panel.log, most=most)


def panel_height(panel: Panel, least: float) -> float:
    """Height at which the names at the right end fit, at least ``least``."""
    return max(least, 31.0 + _ROOM * len(_labelled(panel)))


def _labelled(panel: Panel) -> list[Line]:
    return [line for line in panel.lines if line.style != "slot"]


def _limits(panel: Panel) -> tuple[float, float]:
    """The value range of a panel, its own where none is given."""
    if panel.limits is not None and panel.limits[1] > panel.limits[0]:
        return panel.limits
    edges = [edge for line in panel.lines for edge in (line.values, line.low, line.high)]
    values = np.concatenate([np.asarray(edge, dtype=float) for edge in edges]) if edges else _NONE
    values = values[np.isfinite(values) & ((values > 0) | (not panel.log))]
    return padded_range(values, log=panel.log, share=0.05)


def padded_range(values: Any, *, log: bool, share: float) -> tuple[float, float]:
    """Compute the ends of an axis that shows all ``values`` with a small margin."""
    if len(values) == 0:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(np.min(values)), float(np.max(values))
    if log:
        return low / (1 + 4 * share), high * (1 + 4 * share)
    room = share * (high - low) or 0.05 * abs(high) or 0.05
    return low - room, high + room


@lru_cache(maxsize=256)
def value_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Choose at most ``most + 1`` round numbers from ``low`` to ``high``."""
    return tuple(_round(value) for value in _multiples(low, high, most, (1.0, 2.0, 2.5, 5.0, 10.0)))


@lru_cache(maxsize=256)
def step_ticks(low: int, high: int, most: int) -> tuple[int, ...]:
    """Choose at most ``most + 1`` round steps from ``low`` to ``high``."""
    steps = _multiples(low, high, most, (1.0, 2.0, 5.0, 10.0), least=1.0)
    return tuple(round(value) for value in steps)


def _multiples(
    low: float, high: float, most: int, digits: Sequence[float], least: float = 0.0
) -> Iterator[float]:
    """Multiples of the smallest round distance with at most ``most`` of them from end to end."""
    wide = (high - low) / most
    if wide > 0:
        power = 10.0 ** math.floor(math.log10(wide))
        least = max(
            least, next(digit * power for digit in digits if digit * power >= wide * (1 - 1e-9))
        )
    if least <= 0 or not math.isfinite(least):
        return iter((low,))
    slack = 1e-9 * (high - low)
    first, last = math.ceil((low - slack) / least), math.floor((high + slack) / least)
    return (place * least for place in range(first, last + 1))


@lru_cache(maxsize=256)
def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Choose powers of ten from ``low`` to ``high``, with 3 or with 2 and 5 between if they fit."""
    if not 0 < low < high:
        return ()
    decades = math.log10(high / low)
    digits = (1.0,) if decades > 2.2 else ((1.0, 3.0) if decades > 1 else (1.0, 2.0, 5.0))
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    powers = powers[:: 1 + len(powers) // 7]
    values = (digit * 10.0**power for power in powers for digit in digits)
    return tuple(_round(value) for value in values if low * 0.999 <= value <= high * 1.001)


def _round(value: float) -> float:
    return float(f"{value:.6g}")


def _axes(canvas: Canvas, panel: Panel, limits: tuple[float, float]) -> None:
    values = log_ticks(*limits) if panel.log else value_ticks(*limits, most=4)
    heights = [math.log10(value) for value in values] if panel.log else values
    _rules(canvas, heights)
    for height, value in zip(heights, values, strict=True):
        canvas.text((0, height), number(value), ink=_SOFT, frame="beside", offset=(-3, -2.6),
                   align="right")  # fmt: skip
    _steps(canvas, panel.span, most=max(2, round(1.3 * canvas.size[0] / 72)))


def _rules(canvas: Canvas, heights: Sequence[float]) -> None:
    across = [x for _ in heights for x in (0.0, 1.0, math.nan)]
    up = [y for height in heights for y in (height, height, math.nan)]
    if heights:
        canvas.line(across, up, ink=_RULE, width=0.6, frame="beside")


def _steps(canvas: Canvas, span: tuple[int, int], *, most: int, down: float = 10.0) -> None:
    canvas.line((0, 1), (0, 0), ink=_RULE, width=0.8, frame="inside")
    canvas.text((0, 0), "step", ink=_SOFT, frame="inside", offset=(-5, -down), align="right")
    for step in step_ticks(*span, most=most):
        canvas.text((step, 0), str(step), ink=_SOFT, frame="over", offset=(0, -down))


def _line(canvas: Canvas, line: Line, ends: tuple[float, float], *, log: bool, dash: Dash) -> None:
    ink = TONES[line.tone].light if line.tone >= 0 else _INK
    # Hundreds of noisy points at full width would melt into a bar.
    width, alpha = (0.8 if len(line.steps) > 250 else 1.4), None
    if line.style == "slot":
        width, dash, alpha = width / 2, "-", 0.45
    elif line.style != "main":
        ink, width = _SOFT, 1.0
        dash = (0, (4, 2)) if line.style == "limit" else (0, (1.2, 1.4))
    values = _places(line.values, ends, log=log)
    if line.low and line.high:
        rings = _bands(
            line.steps, *(_places(edge, ends, log=log) for edge in (line.low, line.high))
        )
        if rings:
            canvas.area(rings, ink=ink, alpha=0.16)
    finite = np.count_nonzero(~np.isnan(values))
    few = line.style == "main" and finite <= 25
    if finite:
        canvas.line(line.steps, values, ink=ink, width=width, dash=dash, alpha=alpha,
                   dots=2.6 if few else 0.0)  # fmt: skip


def _places(values: Sequence[float], ends: tuple[float, float], *, log: bool) -> Any:
    """Heights of ``values``; NaN for a gap.

    What is far outside is clipped anyway, and coordinates of 1e300 would not be legal.
    """
    heights = np.asarray(values, dtype=float)
    drawable = np.isfinite(heights)
    if log:
        # Values at or below 0 have no place on the axis.
        drawable &= heights > 0
        heights = np.log10(heights, where=drawable, out=np.full(heights.shape, np.nan))
    room = 10 * (ends[1] - ends[0])
    return np.where(drawable, np.clip(heights, ends[0] - room, ends[1] + room), np.nan)


def _bands(steps: Sequence[int], lows: Any, highs: Any) -> list[Any]:
    """Closed outlines of the stretches where both edges are there."""
    drawable = np.flatnonzero(~np.isnan(lows + highs))
    across = np.asarray(steps, dtype=float)
    outlines = []
    for run in np.split(drawable, np.flatnonzero(np.diff(drawable) > 1) + 1):
        low, high = (np.column_stack((across[run], edge[run])) for edge in (lows, highs))
        outlines += [np.concatenate((low, high[::-1]))] if len(run) else []
    return outlines


def _marks(canvas: Canvas, panel: Panel, *, per_step: float) -> None:
    """Names of the baseline and of the marks above the plot; one without room is left out."""
    taken: list[tuple[float, float]] = []
    end = panel.span[1] + max(canvas.size[0] - canvas.box[2], 8) / per_step

    def write(step: float, text: str, ink: str, *, leftward: bool, row: int = 0) -> bool:
        width = _LETTER * len(text) / per_step
        room = (step - width, step) if leftward else (step, step + width)
        if not row and (any(a < room[1] and room[0] < b for a, b in taken) or room[1] > end):
            return False
        taken.append(room)
        align: Literal["right", "left"] = "right" if leftward else "left"
        canvas.text((step, 1), text, ink=ink, frame="over", offset=(0, 2 + 7.5 * row), align=align,
                   size=_SMALL)  # fmt: skip
        return True

    if panel.baseline is not None:
        write(max(panel.baseline[0], panel.span[0]), "baseline", _SOFT, leftward=False)
    for mark, following in zip_longest(panel.marks, panel.marks[1:]):
        # Close neighbours share the room: the left one writes to its left.
        near = _LETTER * len(mark.label) / per_step
        crowded = following is not None and following.step - mark.step < near
        ink = _SOFT if mark.mild else _MARK
        written = write(mark.step, mark.label, ink, leftward=crowded) or write(
            mark.step, mark.label, ink, leftward=not crowded
        )
        # The onset and its alert are both named, if need be one above the other.
        if not written and 1 < len(panel.marks) <= _NAMED:
            write(mark.step, mark.label, ink, leftward=mark.step + near > end, row=1)


def _cut(label: str, most: int) -> str:
    """The name of a line; of a long one the middle is cut: names of runs differ at their ends."""
    if len(label) <= most:
        return label
    half = (most - 1) // 2
    return f"{label[: most - 1 - half]}…{label[-half:]}"


def _end_labels(
    canvas: Canvas, lines: Sequence[Line], ends: tuple[float, float], *, log: bool, most: int
) -> None:
    """Names at the right ends, pushed apart until they do not touch."""
    line_ends = []
    for line in lines:
        places = _places(line.values, ends, log=log)
        places = places[~np.isnan(places)]
        if len(places):
            share = (places[-1] - ends[0]) / (ends[1] - ends[0])
            line_ends.append((min(max(share, 0.0), 1.0), line))
    line_ends.sort(key=lambda end: end[0])
    gap = _ROOM / (canvas.box[3] - canvas.box[1])
    heights = [height for height, _ in line_ends]
    for index in range(1, len(heights)):
        heights[index] = max(heights[index], heights[index - 1] + gap)
    # Then from the top down: what was pushed out of the plot comes back and pushes the others.
    ceiling = 1.0
    for index in reversed(range(len(heights))):
        heights[index] = min(heights[index], ceiling)
        ceiling = heights[index] - gap
    for height, (_, line) in zip(heights, line_ends, strict=True):
        plain = line.style in ("limit", "other") or line.tone < 0
        ink = _SOFT if plain else WORDS[line.tone].light
        canvas.text((1, height), _cut(line.label, most), ink=ink, frame="inside", offset=(4, -2.4),
                   align="left", size=7.0)  # fmt: skip
