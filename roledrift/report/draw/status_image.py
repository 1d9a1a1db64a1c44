"""The status image: one picture for a chat that says how a run is.

It shows what the page shows and computes nothing; of several runs it is a list, the worst first.
"""

from __future__ import annotations

import textwrap

from roledrift.report.draw.palette import INKS, ink_of
from roledrift.report.draw.panels import draw_panel
from roledrift.report.draw.png import PngCanvas, own_style
from roledrift.report.model import Advice, Figure, Report, RunReport
from roledrift.report.statuses import tally, urgency

SIZE = (800.0, 600.0)
"""Points; at 144 dots per inch 1600 by 1200 pixels."""

_DPI = 144
_EDGE = 24.0
_INK, _SOFT, _WARNING = (INKS[name].light for name in ("ink", "soft", "suspicious"))
_SENTENCE = 5
_ROWS = 14


@own_style()
def status_image(report: Report) -> bytes:
    """Draw the status image as PNG; the same report gives the same bytes."""
    canvas = PngCanvas(SIZE)
    worst = min(report.runs, key=_urgency)
    if worst.sections and len(report.runs) == 1:
        _of_one(canvas, worst)
    else:
        _several(canvas, report)
    return canvas.png(_DPI)


def _say(
    canvas: PngCanvas, at: tuple[float, float], words: str, *, ink: str = _INK, size: float = 10.0
) -> None:
    canvas.write(at, words, ink=ink, size=size)


def _of_one(canvas: PngCanvas, run: RunReport) -> None:
    verdict, ink = run.state.upper(), ink_of(run.state).light
    if "not closed" in run.facts:
        verdict += ", NOT CLOSED"
        ink = _WARNING if run.state == "clean" else ink
    _say(canvas, (_EDGE, 34), f"{verdict}   {run.name}", ink=ink, size=15)
    down = 53.0
    for line in textwrap.wrap(run.headline, 118)[:_SENTENCE]:
        _say(canvas, (_EDGE, down), line)
        down += 13.5
    down += 6
    for notice in run.notices[:1]:
        words = textwrap.shorten(notice, 160, placeholder=" …")
        _say(canvas, (_EDGE, down), words, ink=_WARNING, size=8)
        down += 13
    blocks = run.sections[0].blocks
    for advice in (block for block in blocks if isinstance(block, Advice)):
        words = textwrap.shorten(f"{advice.title}: {advice.items[0]}", 130, placeholder=" …")
        _say(canvas, (_EDGE, down + 2), words, size=9)
        down += 17
    facts = textwrap.shorten("  ·  ".join(run.facts), 165, placeholder=" …")
    _say(canvas, (_EDGE, SIZE[1] - 10), facts, ink=_SOFT, size=8)
    panels = [panel for block in blocks if isinstance(block, Figure) for panel in block.panels]
    room = (SIZE[1] - 26 - down) / max(sum(1.5 if not at else 1 for at in range(len(panels))), 1)
    for at, panel in enumerate(panels):
        height = room * (1 if at else 1.5)
        _say(canvas, (_EDGE, down + 12), panel.title, size=9)
        size = (SIZE[0] - 2 * _EDGE, height - 18)
        draw_panel(canvas.inset(size, (_EDGE, down + 16)), panel)
        down += height


def _several(canvas: PngCanvas, report: Report) -> None:
    _say(canvas, (_EDGE, 36), f"{report.title}: {tally(run.state for run in report.runs)}", size=15)
    runs = sorted(report.runs, key=_urgency)
    for row, run in enumerate(runs[:_ROWS]):
        down = 72 + 36 * row
        _say(canvas, (_EDGE, down), run.state, ink=ink_of(run.state).light, size=10)
        _say(canvas, (_EDGE + 95, down), run.name[:100], size=10)
        line = textwrap.shorten(run.headline, 150, placeholder=" …")
        _say(canvas, (_EDGE + 95, down + 14), line, ink=_SOFT, size=8)
    rest = runs[_ROWS:]
    if rest:
        more = f"+ {len(rest)} more on the page: {tally(run.state for run in rest)}"
        _say(canvas, (_EDGE, 72 + 36 * _ROWS), more, ink=_SOFT)


def _urgency(run: RunReport) -> tuple[int, bool, float]:
    return urgency(run.state, run.incident)
