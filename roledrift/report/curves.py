"""From curves to panels and their tables: what the sections with charts share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from roledrift.report.model import Cell, Line, Mark, Panel, Table
from roledrift.report.numbers import DASH, cell, count
from roledrift.report.palette import tone
from roledrift.report.view import View, spread, thinned

TABLE_ROWS = 60


def marks(view: View, role: str | None = None) -> tuple[Mark, ...]:
    """Onsets of alerts, of one role or of all; at most one per step."""
    found = {
        one.alert.onset: f"onset {one.alert.onset}"
        for one in reversed(view.findings)
        if role is None or one.alert.role == role
    }
    return tuple(Mark(step, found[step]) for step in sorted(found))


def role_line(view: View, role: str, curve: Mapping[int, float], *, label: str = "") -> Line:
    """The main line of a role."""
    kept = thinned(dict(curve))
    return Line(label or role, tuple(kept), tuple(kept.values()), role, tone=tone(role, view.roles))


def panel(view: View, title: str, lines: Sequence[Line], **how: object) -> Panel:
    """A panel over the whole run with its baseline window shaded."""
    return Panel(title, tuple(lines), view.span, baseline=view.baseline, **how)  # type: ignore[arg-type]


def limits(panels: Sequence[Panel], *, log: bool, share: bool) -> tuple[float, float] | None:
    """Value range that neighbouring panels share, with a little room.

    Shares get an axis from 0 that ends at 1 or, where all values are small, a little above them.
    """
    edges = [
        values
        for one in panels
        for line in one.lines
        for edge in (line.values, line.low, line.high)
        if (values := _drawn(edge, log=log))
    ]
    if not edges:
        return None
    low, high = min(map(min, edges)), max(map(max, edges))
    if log:
        return low / 1.5, high * 1.5
    if share:
        top = high * 1.15
        return (0.0, 1.02 if top > 0.5 or top <= 0 else top)
    room = 0.08 * (high - low) or 0.5 * abs(high) or 0.5
    lower = low - room
    # Zero is a natural floor: starting just above it would exaggerate small changes.
    if 0 <= low < 0.35 * high:
        lower = 0.0
    return lower, high + room


def _drawn(values: Sequence[float], *, log: bool) -> Sequence[float]:
    """Those of ``values`` that have a place on an axis."""
    # A sum is finite only if every value is, and nearly all curves are: one pass instead of two.
    if values and math.isfinite(sum(values)) and not (log and min(values) <= 0):
        return values
    return [value for value in values if math.isfinite(value) and (value > 0 or not log)]


def table(
    columns: Mapping[str, Mapping[int, float]], keep: Sequence[int] = (), *, title: str = "Data"
) -> Table:
    """Curves as a table of at most 60 steps, saying so where steps are left out.

    Args:
        columns: Column name to curve.
        keep: Steps that are kept in any case.
        title: Handle of the table.
    """
    steps = sorted({step for curve in columns.values() for step in curve})
    shown = spread(steps, TABLE_ROWS, keep)
    rows = tuple(
        (
            count(step),
            *(cell(curve[step]) if step in curve else Cell(DASH) for curve in columns.values()),
        )
        for step in shown
    )
    caption = ""
    if len(shown) < len(steps):
        caption = f"{len(shown)} of {len(steps)} steps, evenly spread; the run directory holds all."
    return Table(("step", *columns), rows, title, caption, collapsed=True)


def odd_values(curves: Sequence[Mapping[int, float]], *, log: bool) -> str:
    """A remark on values that a chart cannot show; empty if it shows all."""
    values = [value for curve in curves for value in curve.values()]
    if len(_drawn(values, log=log)) == len(values):
        return ""
    broken = sum(not math.isfinite(value) for value in values)
    below = sum(value <= 0 for value in values if math.isfinite(value)) if log else 0
    remarks = []
    if broken:
        remarks.append(f"{broken} non-finite value{'s are' if broken > 1 else ' is'} a gap")
    if below:
        remarks.append(f"{below} value{'s' if below > 1 else ''} at or below 0 not on a log axis")
    return "; ".join(remarks)
