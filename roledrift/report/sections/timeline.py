"""Timeline: the whole run on one strip."""

from __future__ import annotations

from itertools import pairwise

from roledrift.report.model import Bar, Lane, Note, Section, Strip
from roledrift.report.sections.names import role_name
from roledrift.report.view import View

_SHOWN = 8


def build(view: View) -> Section:
    """The timeline section."""
    if not view.records:
        return Section("timeline", "Timeline", (Note("No steps are recorded yet."),))
    lanes = [Lane("recorded", coverage(view))]
    if view.baseline is not None:
        lanes.append(Lane("baseline", (Bar(*view.baseline),)))
    if view.seams:
        lanes.append(Lane("resumed", ticks=view.seams))
    if view.validation:
        lanes.append(Lane("validation", ticks=tuple(sorted(view.validation))))
    for one in view.findings[:_SHOWN]:
        ends = view.since(one)
        label = f"{role_name(one.alert.role)} · {one.alert.finding}"
        lanes.append(Lane(label, (Bar(*ends, f"{one.state} since {ends[0]}", one.state),)))
    hidden = len(view.findings) - _SHOWN
    caption = (
        "Bars of alerts run from onset to close, the cause of the first incident first. A healthy "
        "run has one unbroken bar above an empty lower half."
    )
    if hidden > 0:
        caption += f" {hidden} more alerts are in the alerts section."
    strip = Strip(f"{view.key}-timeline-strip", "", caption, view.span, tuple(lanes))
    return Section("timeline", "Timeline", (strip,), len(view.findings))


def coverage(view: View) -> tuple[Bar, ...]:
    """Stretches of steps without gaps, where a gap is more than twice the usual distance."""
    steps = [record.step for record in view.records]
    distances = sorted(b - a for a, b in pairwise(steps))
    usual = distances[len(distances) // 2] if distances else 1
    bars: list[Bar] = []
    first = steps[0]
    for a, b in zip(steps, [*steps[1:], None], strict=True):
        if b is None or b - a > 2 * usual:
            bars.append(Bar(first, a))
            first = b if b is not None else a
    return tuple(bars)
