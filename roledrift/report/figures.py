"""Panels, strips and heat strips as SVG for a page.

Written out directly: a folder of runs has thousands of panels, and a plotting library takes longer
for one than this takes for fifty. Colours are CSS variables, so one drawing reads on light and dark
pages; there are no inline styles, which a strict content security policy blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise, zip_longest

from roledrift.report.model import Bar, Heat, Line, Panel, Strip
from roledrift.report.numbers import number
from roledrift.report.palette import DASHES, TONES, Dash
from roledrift.report.ticks import linear, logarithmic, whole

_WIDTHS = (547.0, 353.0, 245.0)
_HEIGHT = 115.0
_LONG = 749.0
_SMALL, _FONT, _LARGE = 6.5, 7.5, 8.0
_STATES = {"drift": "drift", "watch": "watch", "": "soft"}


@dataclass(frozen=True, slots=True)
class Frame:
    """Where values come to lie: ``x`` and ``y`` give drawing units.

    Attributes:
        box: Left, top, right, bottom of the plot.
    """

    box: tuple[float, float, float, float]
    x: Callable[[float], float]
    y: Callable[[float], float]


def panel_svg(panel: Panel, key: str, columns: int = 1) -> str:
    """One panel, drawn for a row of ``columns``; ``key`` makes its ids unique."""
    width = _WIDTHS[columns - 1]
    labelled = [line for line in panel.lines if line.style != "slot"]
    several = len(labelled) > 1
    right = 0.985 * width
    if several:
        right -= 10 + 4.03 * max(len(_end(line)) for line in labelled)
    limits = _limits(panel)
    frame = _frame((31.7, 9.4, max(right, 60.0), _HEIGHT - 19.4), panel, limits)
    inside = f' clip-path="url(#{escape(key)}-clip)"'
    parts = [_clip(key, frame), *_axes(frame, panel, limits, width)]
    parts += _marks(frame, panel)
    dashed = sum(line.tone >= 0 for line in labelled) > 1
    for index, line in enumerate(panel.lines):
        dash = line.tone + index // len(TONES) if dashed and line.tone >= 0 else 0
        parts += _line(frame, line, log=panel.log, dash=DASHES[dash % len(DASHES)], inside=inside)
    if several:
        parts += _end_labels(frame, panel, labelled)
    return _svg(width, _HEIGHT, parts)


def _limits(panel: Panel) -> tuple[float, float]:
    """The value range of a panel, its own where none is given."""
    if panel.limits is not None and panel.limits[1] > panel.limits[0]:
        return panel.limits
    values = [
        value
        for line in panel.lines
        for value in (*line.values, *line.low, *line.high)
        if math.isfinite(value) and (value > 0 or not panel.log)
    ]
    if not values:
        return (0.1, 1.0) if panel.log else (0.0, 1.0)
    low, high = min(values), max(values)
    if panel.log:
        return low / 1.2, high * 1.2
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    return low - room, high + room


def _frame(
    box: tuple[float, float, float, float], panel: Panel, limits: tuple[float, float]
) -> Frame:
    left, top, right, bottom = box
    first, last = panel.span
    room = 0.015 * (last - first) or 0.5
    start, across = first - room, (right - left) / (last - first + 2 * room)
    low, high = (math.log(one) for one in limits) if panel.log else limits
    up = (bottom - top) / (high - low)

    log = math.log if panel.log else None

    def y(value: float) -> float:
        where = bottom - ((value if log is None else log(value)) - low) * up
        # Far outside is still drawn, and clipped; coordinates of 1e300 would not be legal.
        if -1000 < where < 2000:
            return where
        return -1000.0 if where < 0 else 2000.0

    return Frame(box, lambda step: left + (step - start) * across, y)


def _clip(key: str, frame: Frame) -> str:
    left, top, right, bottom = frame.box
    return (
        f'<clipPath id="{escape(key)}-clip"><rect x="{_n(left - 2)}" y="{_n(top - 2)}" '
        f'width="{_n(right - left + 4)}" height="{_n(bottom - top + 4)}"/></clipPath>'
    )


def _axes(frame: Frame, panel: Panel, limits: tuple[float, float], width: float) -> list[str]:
    left, top, right, bottom = frame.box
    parts = []
    if panel.baseline is not None:
        a, b = (frame.x(end) for end in _stretched(panel.baseline))
        a, b = max(a, left), min(b, right)
        parts.append(_rect(a, top, b - a, bottom - top, "band"))
    at = logarithmic(*limits) if panel.log else linear(*limits, most=4)
    heights = [(frame.y(value), number(value)) for value in at]
    grid = "".join(f"M{_n(left)} {_n(y)}H{_n(right)}" for y, _ in heights)
    if grid:
        parts.append(f'<path d="{grid}" stroke="var(--rule)" stroke-width=".6"/>')
    parts += [_text(left - 3, y + 2.6, text, "soft", anchor="end") for y, text in heights]
    base = f"M{_n(left)} {_n(bottom)}H{_n(right)}"
    parts.append(f'<path d="{base}" stroke="var(--rule)" stroke-width=".8"/>')
    steps = whole(*panel.span, most=max(2, round(1.3 * width / 72)))
    parts += [_text(frame.x(step), bottom + 10, str(step), "soft") for step in steps]
    return parts


def _stretched(window: tuple[int, int]) -> tuple[float, float]:
    return window[0] - 0.5, window[1] + 0.5


def _line(frame: Frame, line: Line, *, log: bool, dash: Dash, inside: str) -> list[str]:
    colour = f"tone-{line.tone}" if line.tone >= 0 else "ink"
    # Hundreds of noisy points at full width would melt into a bar.
    width, opacity = (0.8 if len(line.steps) > 250 else 1.4), ""
    if line.style == "slot":
        width, dash, opacity = width / 2, "-", ' stroke-opacity=".45"'
    elif line.style != "main":
        colour, width = "soft", 1.0
        dash = (0, (4, 2)) if line.style == "limit" else (0, (1.2, 1.4))
    points = _points(frame, line.steps, line.values, log=log)
    parts = []
    if line.low and line.high:
        lows = _points(frame, line.steps, line.low, log=log)
        highs = _points(frame, line.steps, line.high, log=log)
        parts += [
            f'<path d="M{"L".join(one)}Z" fill="var(--{colour})" fill-opacity=".16"{inside}/>'
            for one in _bands(lows, highs)
        ]
    pattern = ""
    if not isinstance(dash, str):
        pattern = f' stroke-dasharray="{" ".join(_n(one * width) for one in dash[1])}"'
    path = _path(points)
    if path:
        parts.append(
            f'<path d="{path}" stroke="var(--{colour})" stroke-width="{_n(width)}"'
            f"{pattern}{opacity}{inside}/>"
        )
    there = [point for point in points if point]
    if line.style == "main" and len(there) <= 25:
        dots = "".join(f"M{point}h0" for point in there)
        if dots:
            parts.append(
                f'<path d="{dots}" stroke="var(--{colour})" stroke-width="2.6" '
                f'stroke-linecap="round"{inside}/>'
            )
    return parts


def _points(frame: Frame, steps: Sequence[int], values: Sequence[float], *, log: bool) -> list[str]:
    """Coordinates as text, empty for a gap."""
    # Half of the time of a page goes into these numbers: straight lines need no calls per point.
    start, across = frame.x(0), frame.x(1) - frame.x(0)
    isfinite, y = math.isfinite, frame.y
    return [
        f"{start + step * across:.1f} {y(value):.1f}"
        if isfinite(value) and (value > 0 or not log)
        else ""
        for step, value in zip(steps, values, strict=True)
    ]


def _path(points: Sequence[str]) -> str:
    parts, down = [], False
    for point in points:
        if point:
            parts.append(f"{'L' if down else 'M'}{point}")
        down = bool(point)
    return "".join(parts)


def _bands(lows: Sequence[str], highs: Sequence[str]) -> list[list[str]]:
    """Closed outlines of the stretches where both edges are there."""
    found: list[list[str]] = []
    low: list[str] = []
    high: list[str] = []
    for a, b in [*zip(lows, highs, strict=True), ("", "")]:
        if a and b:
            low.append(a)
            high.append(b)
        elif low:
            found.append([*low, *reversed(high)])
            low, high = [], []
    return found


def _marks(frame: Frame, panel: Panel) -> list[str]:
    """Marks and their names; a name without room is left out."""
    left, top, right, bottom = frame.box
    taken: list[tuple[float, float]] = []
    parts = [
        f'<path d="M{_n(frame.x(mark.step))} {_n(top)}V{_n(bottom)}" stroke="var(--drift)" '
        'stroke-width=".9"/>'
        for mark in panel.marks
    ]

    def write(at: float, text: str, colour: str, *, leftward: bool) -> bool:
        width = 4.4 * len(text)
        room = (at - width, at) if leftward else (at, at + width)
        if any(a < room[1] and room[0] < b for a, b in taken) or room[1] > right + 4:
            return False
        taken.append(room)
        anchor = "end" if leftward else "start"
        parts.append(_text(at, top - 2, text, colour, anchor=anchor, size=_SMALL))
        return True

    if panel.baseline is not None:
        write(max(frame.x(panel.baseline[0]), left), "baseline", "soft", leftward=False)
    for mark, following in zip_longest(panel.marks, panel.marks[1:]):
        # Close neighbours share the room: the left one writes to its left.
        at = frame.x(mark.step)
        crowded = following is not None and frame.x(following.step) - at < 4.4 * len(mark.label)
        _ = write(at, mark.label, "drift", leftward=crowded) or write(
            at, mark.label, "drift", leftward=not crowded
        )
    return parts


def _end(line: Line) -> str:
    return line.label if len(line.label) <= 28 else line.label[:27] + "…"


def _end_labels(frame: Frame, panel: Panel, lines: Sequence[Line]) -> list[str]:
    """Names at the right ends, pushed apart until they do not touch."""
    _, top, right, bottom = frame.box
    ends = []
    for line in lines:
        points = [value for value in line.values if math.isfinite(value)]
        points = [value for value in points if value > 0 or not panel.log]
        if points:
            ends.append((min(max(frame.y(points[-1]), top), bottom), line))
    ends.sort(key=lambda end: -end[0])
    heights = [height for height, _ in ends]
    for index in range(1, len(heights)):
        heights[index] = min(heights[index], heights[index - 1] - 8.5)
    excess = max(top - heights[-1], 0.0) if heights else 0.0
    parts = []
    for height, (_, line) in zip(heights, ends, strict=True):
        plain = line.style in ("limit", "other") or line.tone < 0
        colour = "soft" if plain else f"tone-{line.tone}"
        where = height + excess + 2.4
        parts.append(_text(right + 4, where, _end(line), colour, anchor="start", size=7.0))
    return parts


def strip_svg(strip: Strip) -> str:
    """The timeline: one lane under the other on a common axis of steps."""
    first, last = strip.span
    x, height = _long(strip.span, len(strip.lanes), 17.3)
    parts = _rows([lane.label for lane in strip.lanes], 17.3)
    for row, lane in enumerate(strip.lanes):
        y = 4 + 17.3 * (row + 0.5)
        for bar in lane.bars:
            a, b = (x(end) for end in _stretched((bar.first, bar.last)))
            colour = _STATES[bar.state]
            opacity = ".9" if bar.state else ".35"
            parts.append(_rect(a, y - 4.3, b - a, 8.6, colour, opacity))
            parts += _bar_label(bar, x, y, (first, last))
        if lane.ticks:
            ticks = "".join(f"M{_n(x(step))} {_n(y - 3.5)}v7" for step in lane.ticks)
            parts.append(f'<path d="{ticks}" stroke="var(--ink)"/>')
    return _svg(_LONG, height, [*parts, *_steps(strip.span, x, height)])


def _long(span: tuple[int, int], rows: int, pitch: float) -> tuple[Callable[[float], float], float]:
    left, right = 0.2 * _LONG, 0.99 * _LONG
    start, across = span[0] - 0.8, (right - left) / (span[1] - span[0] + 1.6)
    return (lambda step: left + (step - start) * across), 30.2 + pitch * rows


def _rows(labels: Sequence[str], pitch: float) -> list[str]:
    return [
        _text(0.2 * _LONG - 5, 6.8 + pitch * (row + 0.5), label, "ink", anchor="end", size=_LARGE)
        for row, label in enumerate(labels)
    ]


def _steps(span: tuple[int, int], x: Callable[[float], float], height: float) -> list[str]:
    base = height - 18
    line = f"M{_n(0.2 * _LONG)} {_n(base)}H{_n(0.99 * _LONG)}"
    labels = [_text(x(step), height - 7, str(step), "soft") for step in whole(*span, most=9)]
    return [f'<path d="{line}" stroke="var(--rule)" stroke-width=".8"/>', *labels]


def _bar_label(bar: Bar, x: Callable[[float], float], y: float, span: tuple[int, int]) -> list[str]:
    """The label stands left of a bar if there is room, else right of it."""
    before = bar.first > span[0] + 0.2 * (span[1] - span[0])
    if not bar.label or (not before and bar.last > span[1] - 0.2 * (span[1] - span[0])):
        return []
    at = x(bar.first - 0.5) - 4 if before else x(bar.last + 0.5) + 4
    anchor = "end" if before else "start"
    return [_text(at, y + 2.4, bar.label, _STATES[bar.state], anchor=anchor, size=7.0)]


def heat_svg(heat: Heat) -> str:
    """Rows of cells: blue below zero, red above, the stronger the further from it."""
    x, height = _long(heat.span, len(heat.labels), 18.7)
    edges = [*(step - 0.5 for step in heat.steps), heat.steps[-1] + 0.5]
    parts = _rows(heat.labels, 18.7)
    for row, values in enumerate(heat.values):
        y = 4 + 18.7 * (row + 0.1)
        for (left, right), value in zip(pairwise(edges), values, strict=True):
            if math.isfinite(value):
                ink = "warm" if value > 0 else "cold"
                a, b = x(left), x(right)
                parts.append(_rect(a, y, b - a, 15.0, ink, f"{min(abs(value), 1):.2f}"))
    return _svg(_LONG, height, [*parts, *_steps(heat.span, x, height)])


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" '
        'fill="none" stroke-linejoin="round" aria-hidden="true">' + "".join(parts) + "</svg>"
    )


def _rect(x: float, y: float, width: float, height: float, ink: str, opacity: str = "") -> str:
    seen = f' fill-opacity="{opacity}"' if opacity else ""
    return (
        f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0.3))}" height="{_n(height)}" '
        f'fill="var(--{ink})"{seen}/>'
    )


def _text(
    x: float, y: float, text: str, ink: str, *, anchor: str = "middle", size: float = _FONT
) -> str:
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" text-anchor="{anchor}" '
        f'fill="var(--{ink})">{escape(text)}</text>'
    )


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
