"""Panels, strips, heat strips and plots as SVG, drawn with matplotlib and made fit for a page.

Inline styles become attributes (a strict content security policy blocks inline styles), known
colours become CSS variables (so one drawing reads on light and dark pages), and coordinates lose
digits nobody sees.
"""

from __future__ import annotations

import io
import re
import warnings
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
    buffer = io.StringIO()
    # Ids are hashes with this salt: they depend on the key and the drawing alone.
    with own_style(key), warnings.catch_warnings():
        # The browser picks the font, so a glyph that matplotlib's own lacks is no problem.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        renderer = RendererSVG(*size, buffer, metadata=_NOTHING)  # type: ignore[no-untyped-call]
        draw(_PageSheet(renderer, size))
        renderer.finalize()  # type: ignore[no-untyped-call]
    return _fit_for_page(buffer.getvalue(), dots)


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
_TAG = re.compile(r"<(/?)(\w+)([^<>]*?)(/?)>\s*")
_ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')
_BEFORE = re.compile(r"<\?xml.*?(?=<svg\b)|<metadata>.*?</metadata>|<style.*?</style>", re.S)
_LONG_NUMBERS = {1: re.compile(r"\.\d{2,}"), 2: re.compile(r"\.\d{3,}")}
_STYLE_KEYS = frozenset(
    {
        *("fill", "fill-opacity", "opacity", "font-size", "text-anchor"),
        *("stroke", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin"),
        *("stroke-opacity", "stroke-width"),
    }
)


def _fit_for_page(svg: str, dots: Sequence[Dot]) -> str:
    """Rewrite tag by tag; what stands between tags is escaped, so it holds no ``<``."""
    used = set(re.findall(r"""[("]#([\w.-]+)[)"]""", svg))
    opened: list[str] = []

    def tag(match: re.Match[str]) -> str:
        end, name, text, closed = match.groups()
        if end:
            return opened.pop()
        if name == "svg":
            found = _root(text)
        elif name == "a":
            found = _named(dots, text)
        else:
            fine = name == "path" and (" id=" in text or opened[-1] in ("</a>", "</g>"))
            attributes = _attributes(text, used, digits=2 if fine else 1)
            # A group of one drawing says nothing.
            found = f"<{name}{attributes}{closed}>" if attributes or name != "g" else ""
        if not closed:
            opened.append(f"</{found[1:].split(' ')[0].split('>')[0]}>" if found else "")
        return found

    text = _TAG.sub(tag, _BEFORE.sub("", svg))
    return text.replace("<defs></defs>", "").strip()


def _root(attributes: str) -> str:
    box = dict(_ATTRIBUTE.findall(attributes))["viewBox"]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" stroke-linejoin="round" '
        'aria-hidden="true">'
    )


def _named(dots: Sequence[Dot], attributes: str) -> str:
    """The element around a dot: a link if it has one, with its name for those who point at it."""
    number = re.search(r'"dot:(\d+)"', attributes)
    assert number, "links in a drawing are those of dots"
    dot = dots[int(number.group(1))]
    start = f'<a href="{escape(dot.href)}">' if dot.href else "<g>"
    return f"{start}<title>{escape(dot.name)}</title>"


def _attributes(text: str, used: set[str], *, digits: int) -> str:
    found = []
    for name, value in _ATTRIBUTE.findall(text):
        if name == "style":
            found.append(_unstyled(value))
        elif name == "id":
            found.append(f' id="{value}"' if value in used else "")
        elif name == "transform" and value.startswith("rotate(-0 "):
            continue
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
