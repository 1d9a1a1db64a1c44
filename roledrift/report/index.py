"""What stands above several runs: a table of all, their curves, the paper's tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from roledrift.errors import ConfigError
from roledrift.report.cells import UNKNOWN, Cell, Table
from roledrift.report.curves import limits, table
from roledrift.report.model import Block, Figure, Line, Note, Panel
from roledrift.report.numbers import count, number
from roledrift.report.palette import TONES
from roledrift.report.paper import blocks as paper_blocks
from roledrift.report.paper.accuracy import banded
from roledrift.report.summary import Summary

_OVERLAID = 12
_ALWAYS = ("task", "scale", "workflow", "routing", "seed")


def overview(summaries: Sequence[Summary], by: Sequence[str] = ()) -> tuple[Block, ...]:
    """Blocks above the runs.

    Args:
        summaries: The runs.
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
    found: list[Block] = [_runs(summaries)]
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


def _runs(summaries: Sequence[Summary]) -> Table:
    columns = (
        "run", "verdict", "onset", "best val.", "at step", "last val.", "steps", "workflow",
        "routing", "task", "scale", "seed", "notes",
    )  # fmt: skip
    rows = tuple(_row(one) for one in summaries)
    return Table(columns, rows, "Runs", key="runs", sortable=True)


def _row(one: Summary) -> tuple[Cell, ...]:
    last = one.validation[max(one.validation)] if one.validation else None
    return (
        Cell(one.name, href=one.href),
        Cell(one.state, state=one.state),
        UNKNOWN if one.onset is None else count(one.onset),
        UNKNOWN if one.best is None else Cell(number(one.best[1]), one.best[1]),
        UNKNOWN if one.best is None else count(one.best[0]),
        UNKNOWN if last is None else Cell(number(last), last),
        count(one.steps),
        Cell(one.workflow),
        Cell(one.routing),
        Cell(one.task or "–"),
        Cell(one.scale or "–"),
        UNKNOWN if one.seed is None else count(one.seed),
        Cell("; ".join(f"{name}: {value}" for name, value in sorted(one.notes.items())) or "–"),
    )


def _differences(summaries: Sequence[Summary]) -> Table | None:
    """Settings that are not the same in all runs and are not in the table of runs already."""
    names = sorted({name for one in summaries for name in one.settings})
    differing = [
        name
        for name in names
        if name not in _ALWAYS
        and not name.startswith("note: ")
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
    lines: list[Line] = []
    if by:
        groups: dict[str, list[Summary]] = {}
        for one in summaries:
            groups.setdefault(" ".join(_value(one, name) for name in by), []).append(one)
    else:
        groups = _groups(summaries)
    for index, (label, runs) in enumerate(list(groups.items())[:_OVERLAID]):
        line = banded(label, [getattr(one, key) for one in runs], index % len(TONES))
        if line is not None:
            lines.append(line)
    if not lines:
        return None
    span = (min(one.steps[0] for one in lines), max(one.steps[-1] for one in lines))
    panel = Panel(key, tuple(lines), (span[0], max(span[1], span[0] + 1)))
    panel = replace(panel, limits=limits([panel], log=False, share=False))
    over = f"the runs of one {' and '.join(by)}" if by else "seeds"
    caption = (
        f"Mean over {over}, the band spans them. Healthy: curves rise or stay level. Open first "
        "the runs that end far below their own best."
    )
    if len(groups) > _OVERLAID:
        caption += f" The first {_OVERLAID} of {len(groups)} groups are drawn."
    curves_of = {one.label: dict(zip(one.steps, one.values, strict=True)) for one in lines}
    return Figure(f"overview-{key}", title, caption, (panel,), table(curves_of))


def _groups(summaries: Sequence[Summary]) -> dict[str, list[Summary]]:
    """Label to runs; runs that differ in more than the seed stand alone under their names."""
    placed: dict[tuple[str, str, str, str, str], list[Summary]] = {}
    for one in summaries:
        notes = "; ".join(f"{name}: {value}" for name, value in sorted(one.notes.items()))
        place = (one.task, one.scale, one.workflow, one.policy, notes)
        placed.setdefault(place, []).append(one)
    varying = [index for index in range(5) if len({place[index] for place in placed}) > 1]
    found: dict[str, list[Summary]] = {}
    for place in sorted(placed):
        runs = placed[place]
        label = " ".join(place[index] for index in varying if place[index])
        if len({one.seed for one in runs}) == len(runs) and (label or len(runs) > 1):
            found[label or "all seeds"] = runs
        else:
            names = [one.name for one in summaries]
            for one in runs:
                found[one.name if names.count(one.name) == 1 else one.key] = [one]
    return found
