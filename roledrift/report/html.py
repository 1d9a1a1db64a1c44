"""The report as one self-contained page: it makes no request, and its policy allows none."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from roledrift.report.cells import UNKNOWN, Cell
from roledrift.report.draw.palette import tone, variables
from roledrift.report.draw.svg import panel_svg, plot_svg, stacked_svg
from roledrift.report.model import (
    Excerpt,
    Panel,
    Report,
)
from roledrift.report.numbers import number
from roledrift.report.texts.embedded_json import embedded_json

_LONG = 60
"""Letters from which a cell is a sentence, and needs room."""


def render_html(report: Report) -> str:
    """Render ``report`` as an HTML document that works from a file.

    Several runs are one page. The same report gives the same bytes.
    """
    style, script = _style(), _asset("texts.js") + _asset("page.js")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    page = _environment().get_template("page.html.j2")
    return page.render(
        report=report, style=Markup(style), script=Markup(script), policy=Markup(policy)
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("roledrift.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    # What draws and embeds escapes what it is given; the templates mark its result as safe.
    environment.globals.update(
        panel_svg=panel_svg, stacked_svg=stacked_svg, plot_svg=plot_svg, alt_text=alt_text
    )
    environment.filters.update(
        cells=_cells,
        embedded_json=embedded_json,
        caption=caption,
        slug=_slug,
        run_of=_run_of,
        tone=tone,
    )
    return environment


def _asset(name: str) -> str:
    return (files("roledrift.report") / "templates" / name).read_text(encoding="utf-8")


def _style() -> str:
    dark = variables(dark=True)
    return (
        f":root{{color-scheme:light dark;{variables(dark=False)}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        + _asset("page.css")
        + _asset("texts.css")
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def caption(excerpt: Excerpt, short: bool = False) -> str:
    """Describe a text on one line: step, turn, reward, ...; ``short`` gives the essentials."""
    known = {
        "turn": (excerpt.turn, f"turn {excerpt.turn}"),
        "reward": (excerpt.reward != UNKNOWN, f"reward {excerpt.reward.text}"),
        "advantage": (excerpt.advantage != UNKNOWN, f"advantage {excerpt.advantage.text}"),
        "tokens": (excerpt.tokens, f"{excerpt.tokens} tokens"),
        "finish": (excerpt.finish not in ("", "unknown"), f"finish: {excerpt.finish}"),
        "prompt": (excerpt.prompt, f"prompt {excerpt.prompt}"),
    }
    chosen = ("tokens", "reward") if short else known
    return " · ".join((f"step {excerpt.step}", *(known[key][1] for key in chosen if known[key][0])))


def alt_text(panel: Panel) -> str:
    """Describe a panel in words: where each line begins and ends, and the marks."""
    sentences = []
    for line in panel.lines:
        finite = [(s, v) for s, v in zip(line.steps, line.values, strict=True) if math.isfinite(v)]
        if line.style == "slot" or not finite:
            continue
        (first, start), (last, end) = finite[0], finite[-1]
        sentences.append(
            f"{line.label} {number(start)} at step {first}, {number(end)} at step {last}"
        )
    return "; ".join((*sentences, *(mark.label for mark in panel.marks)))


def _cells(rows: Sequence[Sequence[Cell]]) -> Markup:
    """Rows of a table: a page has thousands of cells, which a template would take long for."""
    return Markup(
        "\n".join(f"<tr>{_head(row[0])}{''.join(map(_cell, row[1:]))}</tr>" for row in rows)
    )


def _head(cell: Cell) -> str:
    """The first cell of a row is what the row is about."""
    return '<th scope="row"' + _cell(cell)[3:-5] + "</th>"


def _cell(cell: Cell) -> str:
    start = '<td class="long">' if len(cell.text) > _LONG else "<td>"
    shown = str(escape(cell.text))
    if cell.state:
        shown = f'<span class="chip {_slug(cell.state)}">{shown or cell.state}</span>'
    elif cell.value is not None:
        known = cell.value == cell.value
        start = f'<td class="num" data-value="{cell.value}">' if known else '<td class="num">'
    if cell.href:
        shown = f'<a href="{escape(cell.href)}">{shown}</a>'
    note = f"<small>{escape(cell.note)}</small>" if cell.note else ""
    return f"{start}{shown}{note}</td>"


def _slug(text: str) -> str:
    return text.replace(" ", "-")


def _run_of(key: str) -> str:
    """Anchor of the run that a block belongs to."""
    return key.rsplit("-", 1)[0]
