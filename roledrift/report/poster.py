"""One picture that says how a run is, for a chat: verdict, matrix, timeline, the curves that count.

It shows what the page shows and computes nothing; of several runs it is about the worst.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from roledrift.report.drawing import LONG, draw_panel, draw_strip, long_height
from roledrift.report.model import (
    Block,
    Card,
    Cell,
    Figure,
    Lane,
    Panel,
    Report,
    RunReport,
    Strip,
)
from roledrift.report.model import Table as Grid
from roledrift.report.moods import MOODS, urgency
from roledrift.report.palette import INKS, ink_of
from roledrift.report.pictures import finished, page
from roledrift.report.sections.verdict import MATRIX
from roledrift.report.sheet import Sheet, own_style

SIZE = (800.0, 600.0)
"""Points; at 144 dots per inch 1600 by 1200 pixels."""

_DPI = 144
_EDGE = 24.0
_PANEL = (376.0, 92.0)
_PITCH = 106.0
_ROW = 13.2
_INK, _SOFT, _WARNING = (INKS[name].light for name in ("ink", "soft", "suspicious"))
_SENTENCE = 5
_ROWS = 14
_LINES = 12


def poster(report: Report) -> bytes:
    """The picture as PNG; the same report gives the same bytes."""
    with own_style():
        renderer, sheet = page(SIZE, _DPI)
        worst = _worst_first(report.runs)[0]
        if worst.sections and len(report.runs) == 1:
            _one(sheet, worst)
        else:
            _several(sheet, report)
        return finished(renderer, _DPI)


def _say(
    sheet: Sheet, at: tuple[float, float], words: str, *, ink: str = _INK, size: float = 10.0
) -> None:
    x, down = at
    sheet.text((0, 1), words, ink=ink, frame="inside", away=(x, -down), align="left", size=size)


def _one(sheet: Sheet, run: RunReport) -> None:
    verdict, ink = run.state.upper(), ink_of(run.state).light
    if "not closed" in run.facts:
        verdict += ", NOT CLOSED"
        ink = _WARNING if run.state == "clean" else ink
    _say(sheet, (_EDGE, 34), f"{verdict}   {run.name}", ink=ink, size=15)
    down = 53.0
    for line in textwrap.wrap(run.headline, 118)[:_SENTENCE]:
        _say(sheet, (_EDGE, down), line)
        down += 13.5
    down += 6
    for notice in run.notices[:1]:
        words = textwrap.shorten(notice, 160, placeholder=" …")
        _say(sheet, (_EDGE, down), words, ink=_WARNING, size=8)
        down += 13
    facts = textwrap.shorten("  ·  ".join((*run.facts, *run.notes)), 165, placeholder=" …")
    _say(sheet, (_EDGE, down), facts, ink=_SOFT, size=8)
    down += 18
    tables = [one for one in _of(run, "verdict") if isinstance(one, Grid)]
    matrix = next((one for one in tables if one.title == MATRIX), None)
    if matrix is not None:
        down = _matrix(sheet, [[Cell(name) for name in matrix.columns], *matrix.rows], down)
    _charts(sheet, run, down)


def _matrix(sheet: Sheet, rows: Sequence[Sequence[Cell]], down: float) -> float:
    """A line per detector and a column per role, from ``down`` on; where it ends."""
    step = (SIZE[0] - 2 * _EDGE) / max(len(rows[0]), 4)
    letters = int(step / 4.6)
    for cells in rows[:_LINES]:
        for column, cell in enumerate(cells):
            ink = _SOFT if cells is rows[0] else _INK
            ink = ink_of(cell.state).light if cell.state else ink
            said = cell.text or cell.state
            words = f"{said}: {cell.note}" if cell.state and cell.note else said
            words = words if len(words) <= letters else words[: letters - 1] + "…"
            _say(sheet, (_EDGE + step * column, down), words, ink=ink, size=8)
        down += _ROW
    if len(rows) > _LINES:
        more = f"+ {len(rows) - _LINES} more detectors, on the page"
        _say(sheet, (_EDGE, down), more, ink=_SOFT, size=8)
        down += _ROW
    return down - _ROW / 2


def _charts(sheet: Sheet, run: RunReport, top: float) -> None:
    renderer = sheet.renderer
    section = next((one for one in run.sections if one.key == "timeline"), None)
    strip = next((one for one in _of(run, "timeline") if isinstance(one, Strip)), None)
    if strip is not None and section is not None:
        room = SIZE[1] - top - 2 * _PITCH - 12
        lanes = shown_lanes(strip, int((room - 32) // 17.3))
        short = replace(strip, lanes=lanes)
        height = long_height(short)
        draw_strip(Sheet(renderer, (LONG, height), (_EDGE, top)), short)
        more = left_out(section.count, lanes)
        _say(sheet, (_EDGE, top + height - 7), more, ink=_WARNING, size=8)
        top += height + 2
    for index, (title, panel) in enumerate(_panels(run)):
        across, down = index % 2, index // 2
        at = (_EDGE + across * (_PANEL[0] + 8), top + 8 + down * _PITCH)
        if at[1] + _PANEL[1] > SIZE[1]:
            return  # The page has them all.
        _say(sheet, (at[0] + 4, at[1] + 2), title[:70], ink=_SOFT, size=8)
        draw_panel(Sheet(renderer, _PANEL, (at[0], at[1] + 4)), panel)


def _accuses(lane: Lane) -> bool:
    return any(bar.state for bar in lane.bars)


def left_out(alerts: int, lanes: Sequence[Lane]) -> str:
    """How many alerts have no lane; empty if all have one."""
    hidden = alerts - sum(map(_accuses, lanes))
    return f"+ {hidden} more alert{'s' * (hidden > 1)}, on the page" if hidden > 0 else ""


def shown_lanes(strip: Strip, most: int) -> tuple[Lane, ...]:
    """What is recorded, then alerts, worst first, then the rest; in the order of the page."""
    alerts = [lane for lane in strip.lanes if _accuses(lane)]
    others = [lane for lane in strip.lanes if not _accuses(lane)]
    kept = [*others[:1], *alerts, *others[1:]][: max(most, 2)]
    return tuple(lane for lane in strip.lanes if lane in kept)


def _panels(run: RunReport) -> Iterator[tuple[str, Panel]]:
    """Evidence of the worst alert, then gradients, then the first statistics of the roles."""
    cards = [one for one in _of(run, "alerts") if isinstance(one, Card)]
    accused = [one.facts.split(" · ")[1] for one in cards if " · " in one.facts]
    # An alert about all roles says nothing on which to show; the next one may.
    role = next((name for name in accused if name in run.roles), "")
    for block in cards[0].blocks if cards else ():
        if isinstance(block, Figure):
            yield cards[0].title, block.panels[0]
            break
    for key, most in (("gradients", 1), ("roles", 4), ("outcome", 1)):
        figures = [one for one in _of(run, key) if isinstance(one, Figure)][:most]
        for figure in figures:
            drawn = [panel for panel in figure.panels if not panel.absent]
            drawn.sort(key=lambda panel: panel.title != role)
            if drawn:
                yield f"{figure.title}: {drawn[0].title}", drawn[0]


def _of(run: RunReport, key: str) -> tuple[Block, ...]:
    return next((one.blocks for one in run.sections if one.key == key), ())


def _several(sheet: Sheet, report: Report) -> None:
    _say(sheet, (_EDGE, 36), f"{report.title}: {_tally(report.runs)}", size=15)
    runs = _worst_first(report.runs)
    for row, run in enumerate(runs[:_ROWS]):
        down = 72 + 36 * row
        _say(sheet, (_EDGE, down), run.state, ink=ink_of(run.state).light, size=10)
        _say(sheet, (_EDGE + 95, down), run.name[:100], size=10)
        line = textwrap.shorten(run.headline, 150, placeholder=" …")
        _say(sheet, (_EDGE + 95, down + 14), line, ink=_SOFT, size=8)
    rest = runs[_ROWS:]
    if rest:
        more = f"+ {len(rest)} more on the page: {_tally(rest)}"
        _say(sheet, (_EDGE, 72 + 36 * _ROWS), more, ink=_SOFT)


def _worst_first(runs: Sequence[RunReport]) -> list[RunReport]:
    return sorted(runs, key=lambda run: urgency(run.state, run.incident))


def _tally(runs: Sequence[RunReport]) -> str:
    counts = Counter(run.state for run in runs)
    return ", ".join(f"{counts[mood]} {mood}" for mood in reversed(MOODS) if counts[mood])
