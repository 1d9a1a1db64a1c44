"""Panels and plots as SVG, drawn with matplotlib and made fit for a page.

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

from roledrift.report.draw.charts import dots_of, draw_plot, plot_size
from roledrift.report.draw.drawing import draw_panel, panel_height
from roledrift.report.draw.palette import by_light
from roledrift.report.draw.plots import Dot, Plot
from roledrift.report.draw.sheet import Align, Sheet, own_style
from roledrift.report.model import Panel

_SIZE = (300.0, 98.0)
_STACKED = {False: ((480.0, 128.0), (480.0, 82.0)), True: ((250.0, 112.0), (250.0, 82.0))}
"""Of the first and of the following panels, on a wide and on a narrow screen."""


def panel_svg(panel: Panel, key: str) -> str:
    """One panel among small multiples; ``key`` makes its ids unique."""
    return _panel(panel, key, _SIZE)


def stacked_svg(panel: Panel, key: str, place: int, *, narrow: bool = False) -> str:
    """The panel at ``place`` of those that stand one below the other."""
    size = _STACKED[narrow][min(place, 1)]
    return _panel(panel, f"{key}{'-narrow' * narrow}", size)


def _panel(panel: Panel, key: str, size: tuple[float, float]) -> str:
    width, least = size
    return _svg((width, panel_height(panel, least)), key, partial(draw_panel, panel=panel))


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
