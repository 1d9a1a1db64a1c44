"""From run directories to one :class:`~roledrift.report.model.Report`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from roledrift import __version__
from roledrift.config import Config
from roledrift.errors import StoreError
from roledrift.report.curves import limits, table
from roledrift.report.model import (
    Block,
    Cell,
    Figure,
    Line,
    Note,
    Panel,
    Report,
    RunReport,
    Section,
    Table,
    map_text,
)
from roledrift.report.numbers import DASH, cell, count, number
from roledrift.report.palette import TONES
from roledrift.report.sanitise import clean
from roledrift.report.sections import (
    alerts,
    data,
    gradients,
    method,
    outcome,
    roles,
    texts,
    timeline,
    verdict,
)
from roledrift.report.view import View, load, thinned
from roledrift.store.reader import find_runs

SECTIONS: tuple[Callable[[View], Section], ...] = (
    verdict.build,
    timeline.build,
    roles.build,
    gradients.build,
    alerts.build,
    texts.build,
    outcome.build,
    data.build,
)
"""In the order of the page; the method section comes last because it also needs the command."""

_OVERLAID = 12


def build_report(
    paths: Sequence[Path | str] | Path | str,
    config: Config | None = None,
    *,
    command: str | None = None,
) -> Report:
    """Read and judge runs.

    Args:
        paths: Run directories, or folders that hold some.
        config: Judge with this configuration instead of each run's own.
        command: How the report says it was made; None makes one of ``paths``.

    Returns:
        The report; equal runs give an equal report.

    Raises:
        StoreError: If there is no run in ``paths``.
        SchemaError: If a run was written by a newer version.
    """
    given = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    found = list(dict.fromkeys(run for path in given for run in find_runs(path)))
    if not found:
        names = ", ".join(str(path) for path in given) or "nothing"
        raise StoreError(
            f"no run in {names}: give a run directory (with run.json) or a folder of runs"
        )
    if command is None:
        command = "roledrift report " + " ".join(shlex.quote(str(path)) for path in given)
    views = [load(path, _key(index, path), config) for index, path in enumerate(found)]
    runs = tuple(_run(view, command) for view in views)
    report = Report(
        title=runs[0].name if len(runs) == 1 else f"{len(runs)} runs",
        version=__version__,
        command=command,
        overview=_overview(views, runs) if len(runs) > 1 else (),
        runs=runs,
    )
    cleaned: Report = map_text(report, clean)
    return cleaned


def _key(index: int, path: Path) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", path.name.lower()).strip("-")
    return f"run{index + 1}-{slug}" if slug else f"run{index + 1}"


def _run(view: View, command: str) -> RunReport:
    sections = [make(view) for make in SECTIONS] + [method.build(view, command)]
    return RunReport(
        key=view.key,
        name=view.header.run or view.path.name,
        state=verdict.overall(view),
        headline=verdict.headline(view),
        meanwhile=verdict.meanwhile(view),
        roles=view.roles,
        facts=_facts(view),
        quality=len(data.remarks(view)),
        sections=tuple(sections),
    )


def _facts(view: View) -> tuple[str, ...]:
    workflow = view.header.workflow
    parts = [
        f"{role.name} ×{role.slots}" if role.slots > 1 else role.name for role in workflow.roles
    ]
    facts = [f"{workflow.name}, {workflow.routing}", " + ".join(parts)]
    known = (view.header.host, view.header.task, view.header.scale)
    facts += [fact for fact in known if fact]
    if view.header.seed is not None:
        facts.append(f"seed {view.header.seed}")
    facts += [f"{name}: {value}" for name, value in sorted(view.header.notes.items())]
    if view.records:
        facts.append(f"steps {view.records[0].step}–{view.records[-1].step}")
    return (*facts, view.state)


def _overview(views: Sequence[View], runs: Sequence[RunReport]) -> tuple[Block, ...]:
    rows = tuple(_row(view, run) for view, run in zip(views, runs, strict=True))
    columns = (
        "run",
        "verdict",
        "onset",
        "best val.",
        "last val.",
        "steps",
        "workflow",
        "routing",
        "task",
        "seed",
        "notes",
    )
    blocks: list[Block] = [Table(columns, rows, title="Runs")]
    validated = [view for view in views if view.validation]
    if validated:
        blocks.append(_overlay(validated[:_OVERLAID]))
    if len(validated) > _OVERLAID:
        blocks.append(Note(f"The figure shows the first {_OVERLAID} of {len(validated)} runs."))
    if len(validated) < len(views):
        blocks.append(Note(f"Runs without validation accuracy: {len(views) - len(validated)}."))
    return tuple(blocks)


def _row(view: View, run: RunReport) -> tuple[Cell, ...]:
    header = view.header
    top = outcome.best(view.validation)
    return (
        Cell(run.name, href=f"#{view.key}"),
        Cell(run.state, state=run.state),
        count(view.findings[0].alert.onset) if view.findings else Cell(DASH),
        Cell(DASH) if top is None else Cell(f"{number(top[1])} @ {top[0]}", top[1]),
        cell(view.validation[max(view.validation)]) if view.validation else Cell(DASH),
        count(len(view.records)),
        Cell(header.workflow.name),
        Cell(header.workflow.routing),
        Cell(header.task or DASH),
        Cell(DASH) if header.seed is None else count(header.seed),
        Cell("; ".join(f"{name}: {value}" for name, value in sorted(header.notes.items())) or DASH),
    )


def _overlay(views: Sequence[View]) -> Figure:
    curves = {view.header.run or view.path.name: view.validation for view in views}
    if len(curves) < len(views):
        curves = {view.key: view.validation for view in views}
    lines = []
    for index, (name, curve) in enumerate(curves.items()):
        kept = thinned(curve)
        lines.append(Line(name, tuple(kept), tuple(kept.values()), tone=index % len(TONES)))
    span = (min(view.span[0] for view in views), max(view.span[1] for view in views))
    whole = Panel("validation accuracy", tuple(lines), span)
    return Figure(
        "overview-validation",
        "Validation accuracy of all runs",
        "Healthy: curves rise or stay level. Runs that end far below their own best are the ones "
        "to open first.",
        (replace(whole, limits=limits([whole], log=False, share=False)),),
        table(curves),
    )
