"""What stands above several runs: a table of all, their curves, and what overviews add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from roledrift.errors import ConfigError
from roledrift.report.cells import UNKNOWN, Cell, Table
from roledrift.report.curves import limits
from roledrift.report.model import Block, Figure, Mark, Panel, Prose
from roledrift.report.numbers import cell, count
from roledrift.report.sections.names import role_name
from roledrift.report.statuses import tally, urgency
from roledrift.report.sweep.bands import banded
from roledrift.report.sweep.overviews import added
from roledrift.report.sweep.summary import Summary, Unreadable

_SHOWN = 24
_VALIDATION = "validation accuracy"
_ALWAYS = ("task", "scale", "workflow", "routing", "seed")
_NAMES = ("run",)
"""Notes that repeat what a run is called."""
_NOTES = 120
"""Letters of notes in the table of runs; the table of differences has them in full."""
_LABEL = 40
_PARTS = 3


def overview(
    summaries: Sequence[Summary],
    by: Sequence[str] = (),
    unreadable: Sequence[Unreadable] = (),
    *,
    paper: bool = False,
) -> tuple[Block, ...]:
    """Build the blocks above the runs.

    Args:
        summaries: The runs.
        unreadable: Runs that are named only.
        by: What the runs of one curve have in common, names out of :func:`keys`; empty for all but
            the seed.
        paper: With the paper's tables and figures even if no run is of its grid.

    Raises:
        ConfigError: For a name that no run has, and for ``paper`` where that is not installed.
    """
    unknown = [name for name in by if name not in keys(summaries)]
    if unknown:
        raise ConfigError(
            f"runs cannot be grouped by {unknown[0]!r}: these have {', '.join(keys(summaries))}"
        )
    blocks: list[Block] = [Prose(_tally(summaries, unreadable)), _runs(summaries, unreadable)]
    differing = _differences(summaries)
    if differing is not None:
        blocks.append(differing)
    multiples = _multiples(summaries, by)
    if multiples is not None:
        blocks.append(multiples)
    return (*blocks, *added(summaries, paper=paper))


def _tally(summaries: Sequence[Summary], unreadable: Sequence[Unreadable]) -> str:
    """How many runs are in which state, and what is the same in all of them."""
    text = tally(summary.state for summary in summaries)
    text += f", {len(unreadable)} unreadable." if unreadable else "."
    alike = [_same(summaries, name) for name in ("workflow", "routing", "task", "scale", "seed")]
    notes = summaries[0].notes
    varying = {*_varying_notes(summaries), *_NAMES}
    alike += [f"{name}: {notes[name]}" for name in sorted(notes) if name not in varying]
    shared = _cut(" · ".join(filter(None, alike)), 2 * _NOTES)
    return f"{text} All runs: {shared}." if shared else text


def _same(summaries: Sequence[Summary], name: str) -> str:
    """The value that all runs have; empty if they differ or none has it."""
    values = {getattr(summary, name) for summary in summaries}
    value = values.pop() if len(values) == 1 else None
    return "" if value in (None, "") else f"{name} {value}"


def _runs(summaries: Sequence[Summary], unreadable: Sequence[Unreadable]) -> Table:
    """One line per run, worst first; what is the same in all runs has no column."""
    differing = [
        name
        for name in ("workflow", "routing", "task", "scale", "seed")
        if len({getattr(summary, name) for summary in summaries}) > 1
    ]
    columns = (
        "run", "outcome", "what happened", "onset", "best val.", "at step", "last val.", "steps",
        *differing,
    )  # fmt: skip
    rows = tuple(_row(summary, differing) for summary in _worst_first(summaries)) + tuple(
        (Cell(Path(run.path).name), Cell("unreadable"), Cell(run.why))
        + (UNKNOWN,) * (len(columns) - 3)
        for run in unreadable
    )
    caption = "Worst first, then by onset; a click on a heading sorts. Onset: first bad step."
    return Table(columns, rows, "Runs", caption, key="runs", sortable=True)


def _worst_first(summaries: Sequence[Summary]) -> list[Summary]:
    """The order of the table and of the small multiples."""
    return sorted(summaries, key=lambda summary: urgency(summary.state, summary.incident))


def _row(summary: Summary, differing: Sequence[str]) -> tuple[Cell, ...]:
    last = summary.validation[max(summary.validation)] if summary.validation else None
    incident = summary.incident
    cause = incident and Cell(summary.lead, note=f"{role_name(incident.role)}: {incident.finding}")
    facts = (getattr(summary, name) for name in differing)
    return (
        Cell(summary.name, href=summary.href),
        Cell(summary.state, state=summary.state, note="" if summary.closed else "not closed"),
        cause or UNKNOWN,
        UNKNOWN if incident is None else count(incident.onset),
        cell(None if summary.best is None else summary.best[1]),
        UNKNOWN if summary.best is None else count(summary.best[0]),
        cell(last),
        count(summary.steps),
        *(count(fact) if isinstance(fact, int) else Cell(fact or "–") for fact in facts),
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _varying_notes(summaries: Sequence[Summary]) -> list[str]:
    """Notes that are not the same in all runs; without those that repeat a run's name."""
    names = sorted({name for summary in summaries for name in summary.notes})
    return [
        name
        for name in names
        if name not in _NAMES and len({summary.notes.get(name) for summary in summaries}) > 1
    ]


def _differences(summaries: Sequence[Summary]) -> Table | None:
    """Settings and notes that are not the same in all runs, in full."""
    names = sorted({name for summary in summaries for name in summary.settings})
    differing = [
        name
        for name in names
        if name not in _ALWAYS
        and name.removeprefix("note: ") not in _NAMES
        and len({summary.settings.get(name, "") for summary in summaries}) > 1
    ]
    if not differing:
        return None
    rows = tuple(
        (
            Cell(summary.name, href=summary.href),
            *(Cell(summary.settings.get(n, "") or "–") for n in differing),
        )
        for summary in summaries
    )
    title = "What else differs between the runs"
    return Table(("run", *differing), rows, title, collapsed=True, key="differences")


def keys(summaries: Sequence[Summary]) -> list[str]:
    """List what runs can be grouped by: ``policy``, settings, and notes without ``note: ``."""
    names = {name.removeprefix("note: ") for summary in summaries for name in summary.settings}
    return sorted({"policy", *names})


def _value(summary: Summary, name: str) -> str:
    if name == "policy":
        return summary.policy
    return summary.settings.get(name) or summary.settings.get(f"note: {name}") or f"no {name}"


def _multiples(summaries: Sequence[Summary], by: Sequence[str]) -> Figure | None:
    """A small chart per run, the worst first; runs that differ in the seed alone share one.

    It shows the validation accuracy, or the reward of runs that were not validated.
    """
    if by:
        groups: dict[str, list[Summary]] = {}
        for summary in summaries:
            groups.setdefault(" ".join(_value(summary, name) for name in by), []).append(summary)
    else:
        groups = _groups(summaries)
    place = {summary.key: at for at, summary in enumerate(_worst_first(summaries))}
    order = sorted(groups, key=lambda label: min(place[summary.key] for summary in groups[label]))
    drawn = (_multiple(label, groups[label]) for label in order)
    panels = [panel for panel in drawn if panel is not None]
    if not panels:
        return None
    steps = [step for panel in panels for line in panel.lines for step in line.steps]
    span = (min(steps), max(*steps, min(steps) + 1))
    shares = [panel for panel in panels if panel.lines[0].label.startswith(_VALIDATION)]
    common = limits(shares, log=False, share=True)
    own = [
        common if panel in shares else limits([panel], log=False, share=False) for panel in panels
    ]
    shown = [
        replace(panel, span=span, limits=scale)
        for panel, scale in zip(panels[:_SHOWN], own, strict=False)
    ]
    caption = "The worst first. Red: the onset of the incident."
    if any(line.low for panel in shown for line in panel.lines):
        over = f"the runs of one {' and '.join(by)}" if by else "seeds"
        caption += f" Lines with n are means over {over}, the band spans them."
    if len(panels) > _SHOWN:
        caption += f" Drawn are {_SHOWN} of {len(panels)}; the table has all."
    return Figure("multiples", "Validation accuracy, or else the reward", caption, tuple(shown))


def _multiple(label: str, runs: Sequence[Summary]) -> Panel | None:
    """Runs that belong together, in one panel; None if nothing was recorded."""
    # A single validation is a dot, which says nothing.
    validated = any(len(run.validation) > 1 or not run.reward for run in runs)
    key = "validation" if validated else "reward"
    name = _VALIDATION if key == "validation" else "reward"
    line = banded(name, [getattr(run, key) for run in runs], -1)
    if line is None:
        return None
    worst = _worst_first(runs)[0]
    onset = None if worst.incident is None or len(runs) > 1 else worst.incident.onset
    marks = () if onset is None else (Mark(onset, f"onset {onset}"),)
    note = "" if key == "validation" and len(runs) == 1 else line.label
    return Panel(label, (line,), marks=marks, href=worst.href, state=worst.state, note=note)


def _groups(summaries: Sequence[Summary]) -> dict[str, list[Summary]]:
    """Label to runs that differ in nothing but the seed; a run that stands alone has its name.

    The label of several runs is the shortest that tells the groups apart: a task that names the
    workflow does not need the workflow's name beside it.
    """
    notes = _varying_notes(summaries)
    placed: dict[tuple[str, ...], list[Summary]] = {}
    for summary in summaries:
        own = (summary.notes.get(name, "") for name in notes)
        place = (summary.task, summary.scale, summary.workflow, summary.policy, *own)
        placed.setdefault(place, []).append(summary)
    telling = _telling(list(placed))
    names = Counter(summary.name for summary in summaries)
    labelled: dict[str, list[Summary]] = {}
    for place in sorted(placed):
        runs = placed[place]
        if len(runs) > 1 and len({run.seed for run in runs}) == len(runs):
            label = " ".join(place[index] for index in telling if place[index]) or "all seeds"
            label = _cut(label, _LABEL)
            # Cut, two can be the same; the key of a run is nobody else's.
            labelled[f"{label} ({runs[0].key})" if label in labelled else label] = runs
        else:
            for summary in runs:
                labelled[summary.name if names[summary.name] == 1 else summary.key] = [summary]
    return labelled


def _telling(places: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """The fewest parts of a place that tell all places apart; the first of equally few."""
    parts = range(len(places[0])) if places else range(0)
    varying = [index for index in parts if len({place[index] for place in places}) > 1]
    for few in range(min(len(varying), _PARTS) + 1):
        for some in combinations(varying, few):
            if len({tuple(place[index] for index in some) for place in places}) == len(places):
                return some
    return tuple(varying)
