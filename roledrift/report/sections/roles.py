"""Section "Curves": one small chart per statistic, with all roles in it."""

from __future__ import annotations

import math
from dataclasses import replace

from roledrift.measure.cards import Statistic
from roledrift.measure.catalogue import charted
from roledrift.report.change import within
from roledrift.report.curves import constant_values, line, overlay_panel
from roledrift.report.draw.palette import tone
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Block, Cell, Figure, Line, Note, Panel, Section, Table
from roledrift.report.numbers import average, cell, count

PLACE = 50


def build(run: JudgedRun) -> Section:
    """Build the section."""
    panels: list[Panel] = []
    absent: list[str] = []
    same: list[str] = []
    for statistic in charted():
        curves = {role: curve for role in run.roles if (curve := run.curve(role, statistic.name))}
        if constant := constant_values(curves):
            same.append(f"{statistic.heading(run.length_unit)}: {constant}")
        elif curves:
            panels.append(_panel(run, statistic, curves))
        elif statistic.supply:
            absent.append(f"{statistic.title}: {statistic.supply}")
    blocks: list[Block] = []
    if panels:
        caption = "Shaded: the start. Thin lines: slots of a role. Red: the onset of the cause."
        blocks.append(Figure(f"{run.key}-curves", "", caption, tuple(panels)))
    if same:
        blocks.append(Note("The same at every step, so not drawn:", tuple(same)))
    if absent and run.records:
        blocks.append(Note("Not in this run, and what would supply it:", tuple(absent)))
    rest = _rest(run)
    if rest is not None:
        blocks.append(rest)
    if not run.records:
        blocks.append(Note("No steps are recorded yet."))
    summary = f"{len(panels)} quantities of {len(run.roles)} role{'s' * (len(run.roles) > 1)}"
    return Section("roles", "Curves", tuple(blocks), summary if panels else "none")


def _rest(run: JudgedRun) -> Table | None:
    """Statistics that have no chart, such as a host's own: in numbers, whatever their names."""
    drawn = {statistic.name for statistic in charted()}
    names = {name for role in run.roles for name in run.measured(role)} - drawn
    window = run.span if run.baseline is None else run.baseline
    rows = []
    for name in sorted(name for name in names if not name.endswith(".refused")):
        for role in run.roles:
            curve = run.curve(role, name)
            if curve:
                before, last = average([*within(curve, window).values()]), curve[max(curve)]
                finite = [value for value in curve.values() if math.isfinite(value)]
                edges = (min(finite), max(finite)) if finite else (None, None)
                cells = map(cell, (before, last, *edges))
                rows.append((Cell(name), Cell(role), *cells, count(len(curve))))
    if not rows:
        return None
    columns = (
        "statistic", "role", f"mean of steps {window[0]}–{window[1]}", "last", "smallest",
        "largest", "records",
    )  # fmt: skip
    return Table(columns, tuple(rows), "Everything else that was measured", collapsed=True)


def _panel(run: JudgedRun, statistic: Statistic, curves: dict[str, dict[int, float]]) -> Panel:
    slots = [line for role in curves for line in _slots(run, statistic, role)]
    title = statistic.heading(run.length_unit)
    shown = overlay_panel(run, title, curves, log=statistic.log, share=statistic.share, slots=slots)
    healthy = f"Healthy: {statistic.healthy}." if statistic.healthy else ""
    return replace(shown, note=" ".join(filter(None, (healthy, shown.note))))


def _slots(run: JudgedRun, statistic: Statistic, role: str) -> list[Line]:
    slots = run.header.workflow.role(role).slots
    lines = []
    for slot in range(slots if slots > 1 else 0):
        curve = run.curve(f"{role}/{slot}", statistic.name)
        if curve:
            colour = tone(role, run.roles)
            lines.append(line(f"slot {slot}", curve, role, style="slot", tone=colour))
    return lines
