"""Panels, strips, heat strips and plots as SVG, drawn with matplotlib and made fit for a page.

Inline styles become attributes (a strict content security policy blocks inline styles), known
colours become CSS variables (so one drawing reads on light and dark pages), and coordinates lose
digits nobody sees.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from html import escape
from typing import Any, cast

from matplotlib.backends.backend_svg import RendererSVG

from roledrift.report.charts import dots_of, draw_plot, plot_size
from roledrift.report.drawing import (
    LONG,
    NARROW,
    draw_heat,
    draw_panel,
    draw_strip,
    long_height,
    panel_height,
)
from roledrift.report.model import Heat, Panel, Strip
from roledrift.report.palette import by_light
from roledrift.report.plots import Dot, Plot
from roledrift.report.sheet import Align, Sheet, own_style

_SIZES = ((340.0, 105.0), (300.0, 98.0), (220.0, 86.0))
_WIDE = 547.0
_LONG_NAME = 16


def panel_svg(panel: Panel, key: str, columns: int = 1) -> str:
    """One panel, drawn for a row of ``columns``; ``key`` makes its ids unique."""
    width, least = _SIZES[columns - 1]
    height = panel_height(panel, least)
    return _svg((_WIDE if is_wide(panel, columns) else width, height), key,
                partial(draw_panel, panel=panel))  # fmt: skip


def is_wide(panel: Panel, columns: int) -> bool:
    """Whether a panel needs more room than a narrow screen has: several lines with long names."""
    names = [len(line.label) for line in panel.lines if line.style != "slot"]
    return columns == 1 and len(names) > 1 and max(names) > _LONG_NAME


def strip_svg(strip: Strip, *, narrow: bool = False) -> str:
    """The timeline: one lane under the other on a common axis of steps."""
    size = (NARROW if narrow else LONG, long_height(strip, narrow=narrow))
    return _svg(size, f"{strip.key}{'-narrow' * narrow}", partial(draw_strip, strip=strip))


def heat_svg(heat: Heat, *, narrow: bool = False) -> str:
    """Rows of cells: blue below zero, red above, the stronger the further from it."""
    size = (NARROW if narrow else LONG, long_height(heat, narrow=narrow))
    return _svg(size, f"{heat.key}{'-narrow' * narrow}", partial(draw_heat, heat=heat))


def plot_svg(plot: Plot) -> str:
    """Points with their names, and links to their runs."""
    return _svg(plot_size(plot), plot.key, partial(draw_plot, plot=plot), dots_of(plot))


def _svg(
    size: tuple[float, float], key: str, draw: Callable[[Sheet], None], dots: Sequence[Dot] = ()
) -> str:
    page = _Markup(size, dots)
    # Ids are hashes with this salt: they depend on the key and the drawing alone.
    with own_style(key):
        renderer = RendererSVG(*size, io.StringIO(), metadata=_NOTHING)  # type: ignore[no-untyped-call]
        cast(Any, renderer).writer = page
        draw(_PageSheet(renderer, size))
        renderer.finalize()  # type: ignore[no-untyped-call]
    return str(page)


class _PageSheet(Sheet):
    """A sheet on a page, where the browser lays out words and nobody sees hundredths."""

    _exact = False

    def _write(
        self, place: tuple[float, float], words: str, *, ink: str, align: Align, size: float
    ) -> None:
        x, y = (f"{pixels:.1f}" for pixels in place)
        how = {"font-size": f"{size:g}", "text-anchor": _ANCHORS[align], "fill": ink}
        writer: Any = cast(RendererSVG, self.renderer).writer
        writer.element("text", words, attrib={"x": x, "y": y, **how})


_ANCHORS: Mapping[Align, str] = {"left": "start", "center": "middle", "right": "end"}
_NOTHING = {"Date": None, "Creator": None, "Format": None, "Type": None}
_LONG_NUMBERS = {1: re.compile(r"\.\d{2,}"), 2: re.compile(r"\.\d{3,}")}
_STYLE_KEYS = frozenset(
    {
        *("fill", "fill-opacity", "opacity", "font-size", "text-anchor"),
        *("stroke", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin"),
        *("stroke-opacity", "stroke-width"),
    }
)


class _Markup:
    """Stands in for the renderer's writer of XML, and writes what fits a page.

    Rewriting the finished SVG instead took more time than drawing it.

    Args:
        size: Of the drawing.
        dots: What its links stand for.
    """

    def __init__(self, size: tuple[float, float], dots: Sequence[Dot]) -> None:
        box = " ".join(f"{side:f}".rstrip("0").rstrip(".") for side in size)
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {box}" stroke-linejoin="round" '
            'aria-hidden="true">'
        ]
        self._ends = ["</svg>"]
        self._dots = dots

    def start(self, tag: str, attrib: Mapping[str, str] | None = None, **extra: str) -> int:
        """Open an element."""
        if tag == "a":
            begin, end = _named(self._dots, str((attrib or extra)["xlink:href"]))
        else:
            fine = tag == "path" and ("id" in extra or self._ends[-1] in ("</a>", "</g>"))
            attributes = _attributes({**(attrib or {}), **extra}, digits=2 if fine else 1)
            begin, end = f"<{tag}{attributes}>", f"</{tag}>"
            if tag == "g" and not attributes:
                # A group of one drawing says nothing.
                begin = end = ""
        self._parts.append(begin)
        self._ends.append(end)
        return len(self._ends) - 1

    def end(self, tag: str | None = None, indent: bool = True) -> None:  # noqa: ARG002 - its shape
        """Close the last element that is open."""
        self._parts.append(self._ends.pop())

    def element(
        self,
        tag: str,
        text: str | None = None,
        attrib: Mapping[str, str] | None = None,
        **extra: str,
    ) -> None:
        """Write a whole element."""
        self.start(tag, attrib, **extra)
        if text is None:
            self._parts[-1] = self._parts[-1][:-1] + "/>"
            self._ends.pop()
        else:
            self._parts.append(escape(text.lstrip(), quote=False))
            self.end()

    def close(self, first: int) -> None:
        """Close what is open from the ``first`` element on."""
        while len(self._ends) > first:
            self.end()

    def flush(self) -> None:
        """Nothing waits."""

    def __str__(self) -> str:
        return "".join(self._parts)


def _named(dots: Sequence[Dot], link: str) -> tuple[str, str]:
    """The element around a dot: a link if it has one, with its name for those who point at it."""
    dot = dots[int(link.removeprefix("dot:"))]
    title = f"<title>{escape(dot.name)}</title>"
    if dot.href:
        return f'<a href="{escape(dot.href)}">{title}', "</a>"
    return f"<g>{title}", "</g>"


def _attributes(given: Mapping[str, str], *, digits: int) -> str:
    found = []
    for name, value in given.items():
        if not value:
            continue
        if name == "style":
            found.append(_unstyled(value))
        elif name == "fill":
            found.append(f' fill="{_inks().get(value, value)}"')
        elif name in ("d", "x", "y", "width", "height"):
            found.append(f' {name}="{_shorter(value, digits)}"')
        else:
            found.append(f' {name.removeprefix("xlink:")}="{value}"')
    return "".join(found)


def _shorter(value: str, digits: int) -> str:
    value = _LONG_NUMBERS[digits].sub(lambda match: match.group()[: digits + 1], value)
    return value.replace("\n", "").replace(" L ", "L").replace("M ", "M").strip()


@lru_cache(maxsize=1024)
def _unstyled(style: str) -> str:
    """``a: b; c: d`` as attributes; fonts come from the page."""
    found = {}
    for one in style.split(";"):
        name, _, value = (part.strip() for part in one.partition(":"))
        if name == "font":
            size = re.search(r"([\d.]+)px", value)
            name, value = "font-size", size.group(1) if size else ""
        if name in _STYLE_KEYS and value:
            found[name] = _inks().get(value.lower(), value.removesuffix("px"))
    if found.get("stroke-opacity") == "0":
        found = {name: value for name, value in found.items() if not name.startswith("stroke")}
    return "".join(f' {name}="{value}"' for name, value in found.items())


@cache
def _inks() -> dict[str, str]:
    return by_light()
