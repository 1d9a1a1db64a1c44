"""Panels, strips and heat strips as SVG, drawn with matplotlib and made fit for a page.

No pyplot and no global state: every drawing has its own figure and canvas. Afterwards inline styles
become attributes (a strict content security policy blocks inline styles), known colours become CSS
variables (so one drawing reads on light and dark pages) and coordinates lose digits nobody sees.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise, zip_longest
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from roledrift.report.model import Bar, Heat, Line, Panel, Strip
from roledrift.report.numbers import number
from roledrift.report.palette import DASHES, INKS, TONES, Dash, by_light

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_INK, _SOFT, _RULE, _BAND = (INKS[name].light for name in ("ink", "soft", "rule", "band"))
_STATES = {"drift": INKS["drift"].light, "watch": INKS["watch"].light, "": _SOFT}
_FONT = 7.5
_WIDTHS = (7.6, 4.9, 3.4)


def panel_svg(panel: Panel, key: str, columns: int = 1) -> str:
    """One panel, drawn for a row of ``columns``; ``key`` makes its ids unique."""
    with _drawing(key):
        return _panel(panel, _WIDTHS[columns - 1])


def _panel(panel: Panel, width: float) -> str:
    height = 1.6
    canvas, axes = _axes(width, height)
    labelled = [line for line in panel.lines if line.style != "slot"]
    several = len(labelled) > 1
    dashed = sum(line.tone >= 0 for line in labelled) > 1
    right = (
        0.985 - several * (0.14 + 0.056 * max(len(_end(line)) for line in labelled)) / width
        if labelled
        else 0.985
    )
    bottom, left = 0.27 / height, 0.44 / width
    axes.set_position((left, bottom, right - left, 1 - bottom - 0.13 / height))
    if panel.log:
        axes.set_yscale("log")
    if panel.baseline is not None:
        axes.axvspan(*_stretched(panel.baseline), color=_BAND, linewidth=0, zorder=0)
    for mark in panel.marks:
        axes.axvline(mark.step, color=_STATES["drift"], linewidth=0.9, zorder=1.5)
    for index, line in enumerate(panel.lines):
        dash = line.tone + index // len(TONES) if dashed and line.tone >= 0 else 0
        _draw(axes, line, log=panel.log, dash=DASHES[dash % len(DASHES)])
    _frame(axes, panel)
    if several:
        _end_labels(axes, panel, labelled)
    return _finished(canvas)


def _axes(width: float, height: float) -> tuple[Canvas, Any]:
    canvas = Canvas(figsize=(width, height))
    FigureCanvasSVG(canvas)
    canvas.patch.set_alpha(0)
    axes = canvas.add_subplot()
    axes.patch.set_alpha(0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_RULE)
    axes.tick_params(colors=_SOFT, labelsize=_FONT, length=0, pad=3)
    return canvas, axes


def _stretched(window: tuple[int, int]) -> tuple[float, float]:
    return window[0] - 0.5, window[1] + 0.5


def _draw(axes: Any, line: Line, *, log: bool, dash: Dash) -> None:
    colour = TONES[line.tone].light if line.tone >= 0 else _INK
    values = _drawable(line.values, log=log)
    if line.low and line.high:
        low, high = (_drawable(edge, log=log) for edge in (line.low, line.high))
        axes.fill_between(line.steps, low, high, color=colour, alpha=0.16, linewidth=0, zorder=2)
    # Hundreds of noisy points at full width would melt into a bar.
    width, alpha = 0.8 if len(line.steps) > 250 else 1.4, 1.0
    if line.style == "slot":
        width, dash, alpha = width / 2, "-", 0.45
    elif line.style != "main":
        colour = _SOFT
        width, dash = 1.0, (0, (4, 2)) if line.style == "limit" else (0, (1.2, 1.4))
    few = sum(math.isfinite(value) for value in values) <= 25 and line.style == "main"
    axes.plot(
        line.steps,
        values,
        color=colour,
        linewidth=width,
        linestyle=dash,
        alpha=alpha,
        marker="o" if few else None,
        markersize=2.2,
        zorder=3,
    )


def _drawable(values: Sequence[float], *, log: bool) -> list[float]:
    fine = (math.isfinite(value) and (value > 0 or not log) for value in values)
    return [value if ok else math.nan for value, ok in zip(values, fine, strict=True)]


def _frame(axes: Any, panel: Panel) -> None:
    first, last = panel.span
    room = 0.015 * (last - first)
    axes.set_xlim(first - room, last + room)
    if panel.limits is not None:
        axes.set_ylim(*panel.limits)
    axes.xaxis.set_major_locator(
        MaxNLocator(round(1.3 * axes.figure.get_figwidth()), integer=True, steps=[1, 2, 5, 10])
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}"))
    if panel.log:
        low, high = axes.get_ylim()
        decades = math.log10(high / low) if low > 0 else 1
        subs = (1.0,) if decades > 2.2 else ((1.0, 3.0) if decades > 1 else (1.0, 2.0, 5.0))
        axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=5))
    else:
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(float(f"{y:.3g}"))))
    axes.grid(axis="y", color=_RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    _mark_labels(axes, panel)


def _mark_labels(axes: Any, panel: Panel) -> None:
    """Names of the baseline and of the marks above the plot; one without room is left out."""
    first, last = panel.span
    width = 0.62 / axes.figure.get_figwidth() * (last - first)
    taken: list[tuple[float, float]] = []

    def write(step: float, text: str, colour: str, *, leftward: bool) -> bool:
        room = (step - width, step) if leftward else (step, step + width)
        if any(a < room[1] and room[0] < b for a, b in taken) or room[1] > last + 0.05 * width:
            return False
        taken.append(room)
        side = "right" if leftward else "left"
        axes.text(
            step,
            1.0,
            text,
            transform=axes.get_xaxis_transform(),
            fontsize=6.5,
            color=colour,
            va="bottom",
            ha=side,
        )
        return True

    if panel.baseline is not None:
        write(panel.baseline[0], "baseline", _SOFT, leftward=False)
    for mark, following in zip_longest(panel.marks, panel.marks[1:]):
        # Close neighbours share the room: the left one writes to its left.
        crowded = following is not None and following.step - mark.step < width
        _ = write(mark.step, mark.label, _STATES["drift"], leftward=crowded) or write(
            mark.step, mark.label, _STATES["drift"], leftward=not crowded
        )


def _end(line: Line) -> str:
    return line.label if len(line.label) <= 28 else line.label[:27] + "…"


def _end_labels(axes: Any, panel: Panel, lines: Sequence[Line]) -> None:
    """Names at the right ends, pushed apart until they do not touch."""
    low, high = axes.get_ylim()
    ends = []
    for line in lines:
        finite = [value for value in _drawable(line.values, log=panel.log) if value == value]
        if finite:
            value = finite[-1]
            if panel.log:
                height = math.log(value / low) / math.log(high / low)
            else:
                height = (value - low) / (high - low)
            ends.append((min(max(height, 0.0), 1.0), line))
    ends.sort(key=lambda end: end[0])
    gap = 0.11
    heights = [height for height, _ in ends]
    for index in range(1, len(heights)):
        heights[index] = max(heights[index], heights[index - 1] + gap)
    excess = max(heights[-1] - 1.0, 0.0) if heights else 0.0
    for height, (_, line) in zip(heights, ends, strict=True):
        plain = line.style in ("limit", "other") or line.tone < 0
        axes.annotate(
            _end(line),
            (1.0, height - excess),
            xycoords="axes fraction",
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            annotation_clip=False,
            color=_SOFT if plain else TONES[line.tone].light,
        )


def strip_svg(strip: Strip) -> str:
    """The timeline: one lane under the other on a common axis of steps."""
    with _drawing(strip.key):
        return _strip(strip)


def _strip(strip: Strip) -> str:
    height = 0.42 + 0.24 * len(strip.lanes)
    canvas, axes = _axes(10.4, height)
    axes.set_position((0.2, 0.3 / height, 0.79, 1 - 0.34 / height))
    first, last = strip.span
    for row, lane in enumerate(strip.lanes):
        for bar in lane.bars:
            left, right = _stretched((bar.first, bar.last))
            axes.barh(
                row,
                right - left,
                left=left,
                height=0.5,
                color=_STATES[bar.state],
                alpha=0.9 if bar.state else 0.35,
                linewidth=0,
            )
            if bar.label:
                _bar_label(axes, bar, row, strip.span)
        if lane.ticks:
            axes.plot(
                lane.ticks,
                [row] * len(lane.ticks),
                "|",
                color=_INK,
                markersize=7,
                markeredgewidth=1.0,
            )
    axes.set_yticks(range(len(strip.lanes)), [lane.label for lane in strip.lanes])
    axes.set_ylim(len(strip.lanes) - 0.4, -0.6)
    axes.set_xlim(first - 0.8, last + 0.8)
    axes.tick_params(axis="y", labelsize=8, labelcolor=_INK)
    axes.xaxis.set_major_locator(MaxNLocator(9, integer=True, steps=[1, 2, 5, 10]))
    return _finished(canvas)


def _bar_label(axes: Any, bar: Bar, row: int, span: tuple[int, int]) -> None:
    """The label stands left of a bar if there is room, else right of it."""
    before = bar.first > span[0] + 0.2 * (span[1] - span[0])
    if not before and bar.last > span[1] - 0.2 * (span[1] - span[0]):
        return
    axes.annotate(
        bar.label,
        (bar.first - 0.5 if before else bar.last + 0.5, row),
        xytext=(-4 if before else 4, 0),
        textcoords="offset points",
        va="center",
        ha="right" if before else "left",
        fontsize=7,
        color=_STATES[bar.state],
    )


def heat_svg(heat: Heat) -> str:
    """Rows of cells: blue below zero, red above, the stronger the further from it."""
    with _drawing(heat.key):
        return _heat(heat)


def _heat(heat: Heat) -> str:
    height = 0.42 + 0.26 * len(heat.labels)
    canvas, axes = _axes(10.4, height)
    axes.set_position((0.2, 0.3 / height, 0.79, 1 - 0.34 / height))
    edges = [*(step - 0.5 for step in heat.steps), heat.steps[-1] + 0.5]
    for row, values in enumerate(heat.values):
        for (left, right), value in zip(pairwise(edges), values, strict=True):
            if math.isfinite(value):
                ink = INKS["warm" if value > 0 else "cold"].light
                axes.barh(
                    row,
                    right - left,
                    left=left,
                    height=0.8,
                    color=ink,
                    alpha=round(abs(value), 2),
                    linewidth=0,
                )
    axes.set_yticks(range(len(heat.labels)), list(heat.labels))
    axes.set_ylim(len(heat.labels) - 0.4, -0.6)
    axes.set_xlim(heat.span[0] - 0.8, heat.span[1] + 0.8)
    axes.tick_params(axis="y", labelsize=8, labelcolor=_INK)
    axes.xaxis.set_major_locator(MaxNLocator(9, integer=True, steps=[1, 2, 5, 10]))
    return _finished(canvas)


@contextmanager
def _drawing(key: str) -> Iterator[None]:
    """Defaults instead of the user's style, ids that depend on ``key`` alone, no mathtext in names.

    The context restores all settings afterwards.
    """
    ours: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": key, "text.parse_math": False}
    with matplotlib.rc_context(), warnings.catch_warnings():
        # The browser picks the font, so a glyph that matplotlib's own lacks is no problem.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(ours)
        yield


def _finished(canvas: Canvas) -> str:
    buffer = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    canvas.savefig(buffer, format="svg", metadata=nothing, transparent=True)
    return _fit_for_page(buffer.getvalue())


_NUMBER = re.compile(r"-?\d+\.\d+")
_STYLE_KEYS = frozenset(
    {
        *("fill", "fill-opacity", "opacity", "font-size", "text-anchor"),
        *("stroke", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin"),
        *("stroke-miterlimit", "stroke-opacity", "stroke-width"),
    }
)


def _fit_for_page(svg: str) -> str:
    root = ElementTree.fromstring(svg[svg.index("<svg") :])
    inks = by_light()
    _remove(root, lambda one: one.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"))
    used = set(re.findall(r"#([A-Za-z0-9_.-]+)[\")]", svg))
    for element in root.iter():
        if element.get("id", "") not in used:
            element.attrib.pop("id", None)
        _unstyle(element)
        _slim(element, inks)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("stroke-linejoin", "round")
    root.set("aria-hidden", "true")
    _remove(root, lambda one: one.tag == f"{{{_SVG}}}defs" and not len(one))
    ElementTree.register_namespace("", _SVG)
    text = ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
    return re.sub(r">\s+<", "><", text)


def _remove(root: ElementTree.Element, unwanted: Callable[[ElementTree.Element], bool]) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            if unwanted(child):
                parent.remove(child)


def _slim(element: ElementTree.Element, inks: Mapping[str, str]) -> None:
    for name, value in list(element.attrib.items()):
        if name in ("fill", "stroke") and value.lower() in inks:
            element.set(name, inks[value.lower()])
        elif name in ("d", "x", "y", "transform", "width", "height", "points"):
            element.set(name, _NUMBER.sub(_shorter, value).replace("\n", ""))
        elif name == f"{{{_XLINK}}}href":
            element.set("href", element.attrib.pop(name))


def _shorter(match: re.Match[str]) -> str:
    return f"{float(match.group()):.1f}".removesuffix(".0")


def _unstyle(element: ElementTree.Element) -> None:
    """Turn ``style="a: b"`` into attributes; fonts come from the page."""
    for one in element.attrib.pop("style", "").split(";"):
        name, _, value = one.partition(":")
        name, value = name.strip(), value.strip()
        if name == "font":
            size = re.search(r"([\d.]+)px", value)
            if size:
                element.set("font-size", size.group(1))
        elif name in _STYLE_KEYS:
            element.set(name, value)
