"""One picture that says how a run is, for a chat: verdict, matrix, timeline, the curves that count.

It shows what the page shows and computes nothing; of several runs it is about the worst.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from matplotlib.backend_bases import RendererBase

from roledrift.report.drawing import LONG, draw_panel, draw_strip, long_height
from roledrift.report.model import Block, Card, Cell, Figure, Mood, Panel, Report, RunReport, Strip
from roledrift.report.model import Table as Grid
from roledrift.report.palette import INKS
from roledrift.report.pictures import finished, page
from roledrift.report.sheet import Sheet, own_style

SIZE = (800.0, 600.0)
"""Points; at 144 dots per inch 1600 by 1200 pixels."""

_DPI = 144
_EDGE = 24.0
_PANEL = (376.0, 92.0)
_STATES: dict[Mood, str] = {
    "drift": INKS["drift"].light,
    "watch": INKS["watch"].light,
    "ok": INKS["good"].light,
    "no verdict": INKS["soft"].light,
    "": INKS["soft"].light,
}
_RANK: tuple[Mood, ...] = ("", "no verdict", "ok", "watch", "drift")
_INK, _SOFT = INKS["ink"].light, INKS["soft"].light
_ROWS = 14
_LINES = 12


def poster(report: Report) -> bytes:
    """The picture as PNG; the same report gives the same bytes."""
    with own_style():
        renderer, sheet = page(SIZE, _DPI)
        worst = max(report.runs, key=lambda run: _RANK.index(run.state))
        if worst.sections and len(report.runs) == 1:
            _one(Sheet(renderer, SIZE), worst)
            _charts(renderer, worst)
        else:
            _several(sheet, report)
        return finished(renderer, _DPI)


def _say(
    sheet: Sheet, at: tuple[float, float], words: str, *, ink: str = _INK, size: float = 10.0
) -> None:
    x, down = at
    sheet.text((0, 1), words, ink=ink, frame="inside", away=(x, -down), align="left", size=size)


def _one(sheet: Sheet, run: RunReport) -> None:
    _say(sheet, (_EDGE, 34), f"{run.state.upper()}   {run.name}", ink=_STATES[run.state], size=15)
    for row, line in enumerate(textwrap.wrap(run.headline, 110)[:2]):
        _say(sheet, (_EDGE, 56 + 16 * row), line, size=11)
    _say(sheet, (_EDGE, 98), "  ·  ".join(run.facts)[:150], ink=_SOFT, size=8)
    matrix = next((one for one in _of(run, "verdict") if isinstance(one, Grid)), None)
    if matrix is not None:
        _matrix(sheet, [[Cell(name) for name in matrix.columns], *map(list, matrix.rows)])


def _matrix(sheet: Sheet, rows: Sequence[Sequence[Cell]]) -> None:
    """A line per detector and a column per role."""
    lines = list(rows)
    step = (SIZE[0] - 2 * _EDGE) / max(len(rows[0]), 4)
    letters = int(step / 4.6)
    for row, cells in enumerate(lines[:_LINES]):
        for column, cell in enumerate(cells):
            ink = _STATES[cell.state] if cell.state else (_SOFT if row == 0 else _INK)
            said = cell.text or cell.state
            words = f"{said} {cell.note}".strip() if cell.state else said
            words = words if len(words) <= letters else words[: letters - 1] + "…"
            _say(sheet, (_EDGE + step * column, 116.0 + 14 * row), words, ink=ink, size=8)
    if len(lines) > _LINES:
        more = f"and {len(lines) - _LINES} more detectors"
        _say(sheet, (_EDGE, 116.0 + 14 * _LINES), more, ink=_SOFT, size=8)


def _charts(renderer: RendererBase, run: RunReport) -> None:
    strip = next((one for one in _of(run, "timeline") if isinstance(one, Strip)), None)
    matrix = next((one for one in _of(run, "verdict") if isinstance(one, Grid)), None)
    top = 116.0 + 14 * (min(len(matrix.rows) + 1, _LINES + 1) if matrix is not None else 0)
    if strip is not None:
        lanes = strip.lanes[:5]
        short = Strip(strip.key, "", "", strip.span, lanes)
        height = long_height(short)
        draw_strip(Sheet(renderer, (LONG, height), (_EDGE, top)), short)
        top += height
    for index, (title, panel) in enumerate(_panels(run)):
        across, down = index % 2, index // 2
        at = (_EDGE + across * (_PANEL[0] + 8), top + 10 + down * (_PANEL[1] + 14))
        if at[1] + _PANEL[1] > SIZE[1]:
            return  # The page has them all.
        sheet = Sheet(renderer, _PANEL, at)
        _say(sheet, (4, 4), title[:70], ink=_SOFT, size=8)
        draw_panel(Sheet(renderer, _PANEL, (at[0], at[1] + 4)), panel)


def _panels(run: RunReport) -> Iterator[tuple[str, Panel]]:
    """Evidence of the worst alert, then gradients, then the first statistics of the roles."""
    evidence = next((one for one in _of(run, "alerts") if isinstance(one, Card)), None)
    accused = ""
    if evidence is not None:
        accused = evidence.facts.split(" · ")[1] if " · " in evidence.facts else ""
        for block in evidence.blocks:
            if isinstance(block, Figure):
                yield evidence.title, block.panels[0]
                break
    for key, most in (("gradients", 1), ("roles", 4), ("outcome", 1)):
        figures = [one for one in _of(run, key) if isinstance(one, Figure)][:most]
        for figure in figures:
            drawn = [panel for panel in figure.panels if not panel.absent]
            drawn.sort(key=lambda panel: panel.title != accused)
            if drawn:
                yield f"{figure.title}: {drawn[0].title}", drawn[0]


def _of(run: RunReport, key: str) -> tuple[Block, ...]:
    return next((one.blocks for one in run.sections if one.key == key), ())


def _several(sheet: Sheet, report: Report) -> None:
    counts = {state: sum(run.state == state for run in report.runs) for state in _RANK[:0:-1]}
    said = ", ".join(f"{times} {state}" for state, times in counts.items() if times)
    _say(sheet, (_EDGE, 36), f"{report.title}: {said}", size=15)
    runs = sorted(report.runs, key=lambda run: -_RANK.index(run.state))
    for row, run in enumerate(runs[:_ROWS]):
        down = 72 + 36 * row
        _say(sheet, (_EDGE, down), run.state, ink=_STATES[run.state], size=10)
        _say(sheet, (_EDGE + 70, down), run.name[:100], size=10)
        line = run.headline if len(run.headline) <= 140 else run.headline[:139] + "…"
        _say(sheet, (_EDGE + 70, down + 14), line, ink=_SOFT, size=8)
    if len(runs) > _ROWS:
        _say(sheet, (_EDGE, 72 + 36 * _ROWS), f"and {len(runs) - _ROWS} more", ink=_SOFT)
