"""What stands above several runs: a table of all, their curves, the paper's tables and figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from roledrift.errors import ConfigError
from roledrift.judgement import Incident
from roledrift.report.cells import UNKNOWN, Cell, Table
from roledrift.report.curves import limits, table
from roledrift.report.model import Block, Figure, Note, Panel, Prose
from roledrift.report.moods import MOODS, urgency
from roledrift.report.numbers import count, number
from roledrift.report.palette import TONES
from roledrift.report.paper import blocks as paper_blocks
from roledrift.report.paper.accuracy import banded
from roledrift.report.sections.names import role_name
from roledrift.report.summary import Summary, Unreadable

_OVERLAID = 8
_ALWAYS = ("task", "scale", "workflow", "routing", "seed")
_NAMES = ("run",)
"""Notes that repeat what a run is called."""
_NOTES = 120
"""Letters of notes in the table of runs; the table of differences has them in full."""
_LABEL = 40
_PARTS = 3


def overview(
    summaries: Sequence[Summary], by: Sequence[str] = (), unreadable: Sequence[Unreadable] = ()
) -> tuple[Block, ...]:
    """Blocks above the runs.

    Args:
        summaries: The runs.
        unreadable: Runs that are named only.
        by: What the runs of one curve have in common, names out of :func:`keys`; empty for all but
            the seed.

    Raises:
        ConfigError: For a name that no run has.
    """
    unknown = [name for name in by if name not in keys(summaries)]
    if unknown:
        raise ConfigError(
            f"runs cannot be grouped by {unknown[0]!r}: these have {', '.join(keys(summaries))}"
        )
    found: list[Block] = [Prose(_tally(summaries, unreadable)), _runs(summaries, unreadable)]
    differing = _differences(summaries)
    if differing is not None:
        found.append(differing)
    for key, quantity in (("validation", "Validation accuracy"), ("reward", "Reward")):
        title = f"{quantity} of all runs"
        figure = _overlay([one for one in summaries if getattr(one, key)], key, title, by)
        if figure is not None:
            found.append(figure)
    lacking = sum(not one.validation for one in summaries)
    if lacking:
        found.append(Note(f"Runs without validation accuracy: {lacking}."))
    return (*found, *paper_blocks(summaries))


def _tally(summaries: Sequence[Summary], unreadable: Sequence[Unreadable]) -> str:
    """How many runs are in which state, and what is the same in all of them."""
    counts = Counter(one.state for one in summaries)
    told = [f"{counts[mood]} {mood}" for mood in reversed(MOODS) if counts[mood]]
    told += [f"{len(unreadable)} unreadable"] if unreadable else []
    text = ", ".join(told) + "."
    alike = [_same(summaries, name) for name in ("workflow", "routing", "task", "scale", "seed")]
    notes = summaries[0].notes
    varying = {*_varying_notes(summaries), *_NAMES}
    alike += [f"{name}: {notes[name]}" for name in sorted(notes) if name not in varying]
    said = _cut(" · ".join(filter(None, alike)), 2 * _NOTES)
    return f"{text} All runs: {said}." if said else text


def _same(summaries: Sequence[Summary], name: str) -> str:
    """The value that all runs have; empty if they differ or none has it."""
    values = {getattr(one, name) for one in summaries}
    value = values.pop() if len(values) == 1 else None
    if value in (None, ""):
        return ""
    return f"seed {value}" if name == "seed" else str(value)


def _runs(summaries: Sequence[Summary], unreadable: Sequence[Unreadable]) -> Table:
    """One line per run, worst first; what is the same in all runs has no column."""
    differing = [
        name
        for name in ("workflow", "routing", "task", "scale", "seed")
        if len({getattr(one, name) for one in summaries}) > 1
    ]
    notes = _varying_notes(summaries)
    columns = (
        "run", "outcome", "what happened", "onset", "best val.", "at step", "last val.", "steps",
        *differing,
    )  # fmt: skip
    order = sorted(summaries, key=lambda one: urgency(one.state, one.incident))
    rows = tuple(_row(one, differing, notes) for one in order) + tuple(
        (Cell(Path(one.path).name), Cell("unreadable"), Cell(one.why))
        + (UNKNOWN,) * (len(columns) - 3)
        for one in unreadable
    )
    caption = "Worst first, then by onset; a click on a heading sorts. Onset: first bad step."
    caption += " Under the names: notes that differ." if notes else ""
    return Table(columns, rows, "Runs", caption, key="runs", sortable=True)


def _row(one: Summary, differing: Sequence[str], notes: Sequence[str]) -> tuple[Cell, ...]:
    last = one.validation[max(one.validation)] if one.validation else None
    incident = one.incident
    said = [f"{name}: {one.notes[name]}" for name in notes if name in one.notes]
    return (
        Cell(one.name, note=_cut("; ".join(said), _NOTES), href=one.href),
        Cell(one.state, state=one.state, note="" if one.closed else "not closed"),
        UNKNOWN if incident is None else Cell(one.headline, note=_cause(incident)),
        UNKNOWN if incident is None else count(incident.onset),
        UNKNOWN if one.best is None else Cell(number(one.best[1]), one.best[1]),
        UNKNOWN if one.best is None else count(one.best[0]),
        UNKNOWN if last is None else Cell(number(last), last),
        count(one.steps),
        *(_named(getattr(one, name)) for name in differing),
    )


def _cause(incident: Incident) -> str:
    return f"{role_name(incident.role)}: {incident.finding}"


def _named(value: str | int | None) -> Cell:
    return count(value) if isinstance(value, int) else Cell(value or "–")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _varying_notes(summaries: Sequence[Summary]) -> list[str]:
    """Notes that are not the same in all runs; without those that repeat a run's name."""
    names = sorted({name for one in summaries for name in one.notes})
    return [
        name
        for name in names
        if name not in _NAMES and len({one.notes.get(name) for one in summaries}) > 1
    ]


def _differences(summaries: Sequence[Summary]) -> Table | None:
    """Settings and notes that are not the same in all runs, in full."""
    names = sorted({name for one in summaries for name in one.settings})
    differing = [
        name
        for name in names
        if name not in _ALWAYS
        and name.removeprefix("note: ") not in _NAMES
        and len({one.settings.get(name, "") for one in summaries}) > 1
    ]
    if not differing:
        return None
    rows = tuple(
        (Cell(one.name, href=one.href), *(Cell(one.settings.get(n, "") or "–") for n in differing))
        for one in summaries
    )
    title = "What else differs between the runs"
    return Table(("run", *differing), rows, title, collapsed=True, key="differences")


def keys(summaries: Sequence[Summary]) -> list[str]:
    """What runs can be grouped by: ``policy``, settings, and notes without their ``note: ``."""
    names = {name.removeprefix("note: ") for one in summaries for name in one.settings}
    return sorted({"policy", *names})


def _value(one: Summary, name: str) -> str:
    if name == "policy":
        return one.policy
    return one.settings.get(name) or one.settings.get(f"note: {name}") or f"no {name}"


def _overlay(
    summaries: Sequence[Summary], key: str, title: str, by: Sequence[str]
) -> Figure | None:
    """One line per group of runs that differ in the seed alone, or as the user groups them."""
    if by:
        groups: dict[str, list[Summary]] = {}
        for one in summaries:
            groups.setdefault(" ".join(_value(one, name) for name in by), []).append(one)
    else:
        groups = _groups(summaries)
    shown = sorted(groups, key=lambda label: _fallen(groups[label], key), reverse=True)[:_OVERLAID]
    drawn = [label for label in groups if label in shown]
    lines = [
        line
        for index, label in enumerate(drawn)
        if (line := banded(label, [getattr(run, key) for run in groups[label]], index % len(TONES)))
    ]
    if not lines:
        return None
    span = (min(one.steps[0] for one in lines), max(one.steps[-1] for one in lines))
    panel = Panel("", tuple(lines), (span[0], max(span[1], span[0] + 1)))
    panel = replace(panel, limits=limits([panel], log=False, share=False))
    caption = "Healthy: curves rise or stay level. "
    if any(line.low for line in lines):
        over = f"the runs of one {' and '.join(by)}" if by else "seeds"
        caption += f"Lines with n are means over {over}, the band spans them. "
    caption += "Open first the runs that end far below their own best."
    if len(groups) > _OVERLAID:
        caption += (
            f" Drawn are the {_OVERLAID} of {len(groups)} that end farthest below their own best; "
            "the table has all."
        )
    curves_of = {one.label: dict(zip(one.steps, one.values, strict=True)) for one in lines}
    return Figure(f"overview-{key}", title, caption, (panel,), table(curves_of))


def _fallen(runs: Sequence[Summary], key: str) -> float:
    """How far the run that fell most ends below its own best."""
    falls = [0.0]
    for one in runs:
        curve = {s: v for s, v in getattr(one, key).items() if math.isfinite(v)}
        falls += [max(curve.values()) - curve[max(curve)]] if curve else []
    return max(falls)


def _groups(summaries: Sequence[Summary]) -> dict[str, list[Summary]]:
    """Label to runs that differ in nothing but the seed; a run that stands alone has its name.

    The label of several runs is the shortest that tells the groups apart: a task that names the
    workflow does not need the workflow's name beside it.
    """
    notes = _varying_notes(summaries)
    placed: dict[tuple[str, ...], list[Summary]] = {}
    for one in summaries:
        own = (one.notes.get(name, "") for name in notes)
        placed.setdefault((one.task, one.scale, one.workflow, one.policy, *own), []).append(one)
    telling = _telling(list(placed))
    names = Counter(one.name for one in summaries)
    found: dict[str, list[Summary]] = {}
    for place in sorted(placed):
        runs = placed[place]
        if len(runs) > 1 and len({one.seed for one in runs}) == len(runs):
            label = " ".join(place[index] for index in telling if place[index]) or "all seeds"
            label = _cut(label, _LABEL)
            # Cut, two can be the same; the key of a run is nobody else's.
            found[f"{label} ({runs[0].key})" if label in found else label] = runs
        else:
            for one in runs:
                found[one.name if names[one.name] == 1 else one.key] = [one]
    return found


def _telling(places: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """The fewest parts of a place that tell all places apart; the first of equally few."""
    parts = range(len(places[0])) if places else range(0)
    varying = [index for index in parts if len({place[index] for place in places}) > 1]
    for few in range(min(len(varying), _PARTS) + 1):
        for some in combinations(varying, few):
            if len({tuple(place[index] for index in some) for place in places}) == len(places):
                return some
    return tuple(varying)
