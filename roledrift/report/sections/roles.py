"""Roles: one small chart per quantity and role, on shared axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from roledrift.report.curves import limits, marks, odd_values, panel, role_line, table
from roledrift.report.model import Block, Cell, Figure, Line, Note, Panel, Section, Table
from roledrift.report.numbers import average, cell, change, count, number
from roledrift.report.palette import tone
from roledrift.report.sections.names import QUANTITIES, Quantity
from roledrift.report.view import View, thinned


def build(view: View) -> Section:
    """The roles section."""
    blocks: list[Block] = []
    absent: list[str] = []
    level: list[str] = []
    for quantity in QUANTITIES:
        curves = {role: view.curve(role, quantity.name, quantity.attribute) for role in view.roles}
        if same := _level(curves):
            level.append(f"{quantity.heading(view.length_unit)}: {same}")
        elif any(curves.values()):
            blocks.append(_figure(view, quantity, curves))
        else:
            absent.append(f"{quantity.title}: {quantity.supply}")
    if level:
        blocks.append(Note("The same at every step, so not drawn:", tuple(level)))
    if absent and view.records:
        blocks.append(Note("Not in this run, and what would supply it:", tuple(absent)))
    rest = _rest(view)
    if rest is not None:
        blocks.append(rest)
    if not view.records:
        blocks.append(Note("No steps are recorded yet."))
    return Section("roles", "Roles", tuple(blocks))


def _level(curves: Mapping[str, Mapping[int, float]]) -> str:
    """The values of roles that never change; empty if some role's does, or is seen once only."""
    there = {role: set(curve.values()) for role, curve in curves.items() if curve}
    if not there or any(len(curve) < 2 for curve in curves.values() if curve):
        return ""
    if any(len(values) > 1 or not math.isfinite(min(values)) for values in there.values()):
        return ""
    return ", ".join(f"{role} {number(values.pop())}" for role, values in there.items())


def _rest(view: View) -> Table | None:
    """Statistics that have no chart, such as a host's own: in numbers, whatever their names."""
    drawn = {quantity.name for quantity in QUANTITIES}
    names = {name for role in view.roles for name in view.measured(role)} - drawn
    window = view.span if view.baseline is None else view.baseline
    rows = []
    for name in sorted(one for one in names if not one.endswith(".refused")):
        for role in view.roles:
            curve = view.curve(role, name)
            if curve:
                before, last = average(view.inside(curve, window)), curve[max(curve)]
                finite = [value for value in curve.values() if math.isfinite(value)]
                edges = (min(finite), max(finite)) if finite else (None, None)
                cells = (*map(cell, (before, last, *edges)), change(before, last))
                rows.append((Cell(name), Cell(role), *cells, count(len(curve))))
    if not rows:
        return None
    columns = (
        "statistic", "role", f"steps {window[0]}–{window[1]}", "last", "smallest", "largest",
        "last against first", "records",
    )  # fmt: skip
    return Table(columns, tuple(rows), "Everything else that was measured", collapsed=True,
                 caption="Means over the answers or tokens of a step.")  # fmt: skip


def _figure(view: View, quantity: Quantity, curves: dict[str, dict[int, float]]) -> Figure:
    panels = [_panel(view, quantity, role, curves[role]) for role in view.roles]
    each = [limits([one], log=quantity.log, share=quantity.share) for one in panels]
    shared = limits(panels, log=quantity.log, share=quantity.share)
    if not quantity.log and not quantity.share and _too_unlike(each, shared):
        scales, own = each, True
    else:
        scales, own = [shared] * len(panels), False
    caption = f"Healthy: {quantity.healthy}."
    if quantity.band:
        caption += " Band: 5th to 95th percentile."
    if any(line.style == "slot" for one in panels for line in one.lines):
        caption += " Thin lines: slots of the role."
    if own:
        caption += " Every role has its own scale."
    odd = odd_values(list(curves.values()), log=quantity.log)
    if odd:
        caption += f" Not drawn: {odd}."
    return Figure(
        key=f"{view.key}-{quantity.name.replace('.', '-')}",
        title=f"{quantity.heading(view.length_unit)}{', log scale' if quantity.log else ''}",
        caption=caption,
        panels=tuple(replace(one, limits=scale) for one, scale in zip(panels, scales, strict=True)),
        table=table(
            {role: curve for role, curve in curves.items() if curve},
            [mark.step for mark in marks(view)],
        ),
    )


def _too_unlike(each: list[tuple[float, float] | None], shared: tuple[float, float] | None) -> bool:
    """True if some role's own range would be a thin line on the shared scale."""
    if shared is None:
        return False
    whole = shared[1] - shared[0]
    return any(one is not None and one[1] - one[0] < 0.4 * whole for one in each)


def _panel(view: View, quantity: Quantity, role: str, curve: dict[int, float]) -> Panel:
    if not curve:
        return panel(view, role, (), absent=f"not measured for {role}: {quantity.supply}")
    line = role_line(view, role, curve)
    if quantity.band:
        low, high = (view.curve(role, quantity.name, name) for name in ("p05", "p95"))
        if all(step in low and step in high for step in line.steps):
            line = replace(
                line,
                low=tuple(low[step] for step in line.steps),
                high=tuple(high[step] for step in line.steps),
            )
    lines = [*_slots(view, quantity, role), line]
    return panel(view, role, lines, log=quantity.log, marks=marks(view, role))


def _slots(view: View, quantity: Quantity, role: str) -> list[Line]:
    count = view.header.workflow.role(role).slots
    found = []
    for slot in range(count if count > 1 else 0):
        curve = view.curve(f"{role}/{slot}", quantity.name, quantity.attribute)
        if curve:
            kept = thinned(curve)
            found.append(
                Line(
                    f"slot {slot}",
                    tuple(kept),
                    tuple(kept.values()),
                    role,
                    style="slot",
                    tone=tone(role, view.roles),
                )
            )
    return found
