"""Panels from curves: what all sections with charts share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from roledrift.report.draw.palette import tone
from roledrift.report.judged_run import JudgedRun, thinned
from roledrift.report.model import Line, Mark, Panel, Style
from roledrift.report.numbers import cell
from roledrift.report.sections.names import role_name

_APART = 8.0
"""Largest over smallest value from which on a logarithmic axis shows all roles."""

_POSITIVE = 0.9
"""Share of values above 0 from which on a logarithmic axis shows a curve."""

Curves = Mapping[str, Mapping[int, float]]
"""Role (or ``*``) to step to value."""


def marks(run: JudgedRun) -> tuple[Mark, ...]:
    """Mark the onset of the cause, or of the first alert; nothing if there is none."""
    return tuple(
        Mark(finding.alert.onset, f"onset {finding.alert.onset}") for finding in run.findings[:1]
    )


def line(label: str, curve: Mapping[int, float], role: str = "", *, style: Style = "main",
         tone: int = -1) -> Line:  # fmt: skip
    """Make a line of at most 600 points from a curve (step to value)."""
    points = thinned(dict(curve))
    return Line(label, tuple(points), tuple(points.values()), role, style=style, tone=tone)


def role_line(run: JudgedRun, role: str, curve: Mapping[int, float], *, label: str = "") -> Line:
    """Make the main line of a role, in its colour."""
    return line(label or role_name(role), curve, role, tone=tone(role, run.roles))


def overlay_panel(
    run: JudgedRun, title: str, curves: Curves, *, log: bool = False, share: bool = False,
    marked: Sequence[Mark] | None = None, slots: Sequence[Line] = (), limit: Sequence[Line] = (),
) -> Panel:  # fmt: skip
    """Draw all roles in one panel over the whole run, with its baseline window shaded.

    The axis is logarithmic where that is asked for, and where roles are so far apart that the
    smaller one would be a flat line.

    Args:
        run: The run.
        title: Quantity and unit.
        curves: Of every role.
        log: Logarithmic if nearly every value is above 0.
        share: Values are in [0, 1].
        marked: Steps to mark; None for the onset of the cause.
        slots: Thin lines behind those of the roles.
        limit: A threshold.
    """
    values = [value for curve in curves.values() for value in curve.values()]
    finite = [value for value in values if math.isfinite(value)]
    above = bool(finite) and min(finite) > 0
    if not log and above and not share:
        log = max(finite) > _APART * min(finite)
    # An estimate of something small is often below 0: then a logarithmic axis has no place for it.
    log = log and sum(value > 0 for value in finite) > _POSITIVE * len(finite)
    own = (role_line(run, role, curve) for role, curve in curves.items() if curve)
    lines = (*slots, *own, *limit)
    odd = undrawn_values(list(curves.values()), log=log)
    shown = Panel(
        f"{title}, log scale" if log else title,
        lines,
        run.span,
        log=log,
        baseline=run.baseline,
        marks=marks(run) if marked is None else tuple(marked),
        note=f"Not drawn: {odd}." if odd else "",
    )
    return replace(shown, limits=limits([shown], log=log, share=share))


def limits(panels: Sequence[Panel], *, log: bool, share: bool) -> tuple[float, float] | None:
    """Compute the value range that neighbouring panels share, with a small margin.

    Shares get an axis from 0 that ends at 1 or, where all values are small, a little above them.
    """
    edges = [
        values
        for panel in panels
        for line in panel.lines
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


def constant_values(curves: Curves) -> str:
    """Name the roles' values if none of them ever changes; empty otherwise."""
    values_of = {role: set(curve.values()) for role, curve in curves.items() if curve}
    if not values_of or any(len(curve) < 2 for curve in curves.values() if curve):
        return ""
    if any(len(values) > 1 or not math.isfinite(min(values)) for values in values_of.values()):
        return ""
    return ", ".join(f"{role} {cell(values.pop()).text}" for role, values in values_of.items())


def undrawn_values(curves: Sequence[Mapping[int, float]], *, log: bool) -> str:
    """Say which values a chart cannot show; empty if it shows all."""
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
