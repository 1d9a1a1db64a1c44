"""Build a :class:`~roledrift.report.model.Report` from run directories."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from roledrift import __version__
from roledrift.config import Config, CostsConfig
from roledrift.errors import RoleDriftError, StoreError
from roledrift.report import sections
from roledrift.report.judged_run import JudgedRun, Sharing, load
from roledrift.report.model import ANCHORS, Block, Diffs, Note, Report, RunReport, Section, map_text
from roledrift.report.sanitise import clean
from roledrift.report.sections import first_screen, method
from roledrift.report.sweep.folder_overview import overview
from roledrift.report.sweep.overviews import measured
from roledrift.report.sweep.summary import Result, Unreadable, readable, summarise
from roledrift.report.texts.text_pairs import pairing_of_runs
from roledrift.store.reader import find_runs


@cache
def _sections() -> tuple[Callable[[JudgedRun], Section], ...]:
    """The functions from a run to a section, in the order of the page.

    Every module of :mod:`roledrift.report.sections` that says its ``PLACE`` has one.
    """
    names = [module.name for module in iter_modules(sections.__path__)]
    modules = [import_module(f"{sections.__name__}.{name}") for name in names]
    placed = [module for module in modules if hasattr(module, "PLACE")]
    return tuple(module.build for module in sorted(placed, key=lambda module: module.PLACE))


def build_report(
    paths: Sequence[Path | str] | Path | str,
    config: Config | None = None,
    sharing: Sharing | None = None,
    *,
    command: str | None = None,
    by: Sequence[str] = (),
    paper: bool = False,
    costs: CostsConfig | None = None,
) -> Report:
    """Read runs, judge them and build their report.

    Args:
        paths: Run directories, or folders that hold some.
        config: Judge with this configuration instead of each run's own.
        sharing: What may be shown; None for everything.
        command: The command that the report names for making it again; None derives it from
            ``paths``.
        by: Settings by which runs are grouped into one curve; see
            :func:`~roledrift.report.sweep.folder_overview.overview`.
        paper: Show the paper's tables and figures even if no run is of its grid.
        costs: Number of GPUs and price of a GPU hour, if the run does not say.

    Returns:
        The report; equal runs give an equal report.

    Raises:
        ConfigError: If no run has a name in ``by``.
        StoreError: If there is no run in ``paths``, or none that can be read.
        SchemaError: If the only run was written by a newer version.
    """
    given, run_paths = runs_in(paths)
    command = command or command_of(given)
    if len(run_paths) == 1:
        judged = load(run_paths[0], key_of(0, run_paths[0]), config, sharing, costs)
        return cleaned(report_of_run(build_run(judged, command), command), sharing)
    views: list[JudgedRun] = []
    results: list[Result] = []
    for at, path in enumerate(run_paths):
        try:
            judged = load(path, key_of(at, path), config, sharing, costs)
        except (RoleDriftError, OSError) as error:
            results.append(Unreadable(str(path), str(error)))
            continue
        run = build_run(judged, command)
        views.append(judged)
        results.append((summarise(judged, run, page_of(run.key), measured(judged)), run))
    texts = _texts_of_two(*views) if len(views) == 2 else ()
    return cleaned(report_of_runs(results, command, by, texts, paper=paper), sharing)


def report_of_run(run: RunReport, command: str, home: str = "") -> Report:
    """Make the report on a single run; ``home`` links to the index of its folder."""
    return Report(run.name, __version__, command, (), (run,), home=home)


def report_of_runs(
    results: Sequence[Result], command: str, by: Sequence[str], texts: Sequence[Block] = (), *,
    paper: bool,
) -> Report:  # fmt: skip
    """Make the report on several runs; ``texts`` come right after the table of runs.

    Raises:
        ConfigError: If no run has a name in ``by``.
        StoreError: If none of the runs could be read.
    """
    done, unreadable = readable(results)
    blocks = overview([summary for summary, _ in done], by, unreadable, paper=paper)
    blocks = (*blocks[:2], *texts, *blocks[2:])
    return Report(f"{len(done)} runs", __version__, command, blocks, tuple(run for _, run in done))


def runs_in(paths: Sequence[Path | str] | Path | str) -> tuple[list[Path], list[Path]]:
    """Find the runs in ``paths``, each once; raises like :func:`build_report`."""
    given = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    run_paths = list(dict.fromkeys(run for path in given for run in find_runs(path)))
    if not run_paths:
        names = ", ".join(str(path) for path in given) or "nothing"
        raise StoreError(
            f"no run in {names}: give a run directory (with run.json) or a folder of runs"
        )
    return given, run_paths


def command_of(given: Sequence[Path]) -> str:
    """Return the command that makes this report again."""
    return "roledrift report " + " ".join(shlex.quote(str(path)) for path in given)


def cleaned(report: Report, sharing: Sharing | None = None) -> Report:
    """Remove control characters, and everything that must not be shared."""
    safe: Report = map_text(report, clean)
    if sharing is None or sharing.redact is None:
        return safe
    hidden: Report = map_text(safe, sharing.hide, ANCHORS)
    return hidden


def key_of(index: int, path: Path) -> str:
    """Make the anchor of a run from its number and the name of its directory."""
    slug = re.sub(r"[^a-z0-9]+", "-", path.name.lower()).strip("-")
    return f"run{index + 1}-{slug}" if slug else f"run{index + 1}"


PAGES = "runs"
"""Folder of the runs' own pages, beside ``index.html``."""


def page_of(key: str) -> str:
    """Return the path of a run's page, relative to the index."""
    return f"{PAGES}/{key}.html"


def build_run(judged: JudgedRun, command: str) -> RunReport:
    """Build the report of one run with all its sections."""
    # The method section comes last: it alone needs the command.
    built = [*(make(judged) for make in _sections()), method.build(judged, command)]
    return RunReport(
        key=judged.key,
        name=judged.header.run or judged.path.name,
        state=judged.conclusion.outcome,
        headline=judged.conclusion.sentence,
        lead=first_screen.lead(judged),
        incident=judged.conclusion.incident,
        notes=tuple(f"{name}: {value}" for name, value in sorted(judged.header.notes.items())),
        notices=first_screen.notices(judged),
        roles=judged.roles,
        facts=_facts(judged),
        sections=tuple(built),
    )


_ROUTINGS = {"shared": "one shared policy", "isolated": "a policy per role"}
_STATES = {"open": "not closed", "empty": "no records"}


def _facts(judged: JudgedRun) -> tuple[str, ...]:
    workflow = judged.header.workflow
    parts = [
        f"{role.name} ×{role.slots}" if role.slots > 1 else role.name for role in workflow.roles
    ]
    facts = []
    if judged.records:
        facts.append(f"steps {judged.records[0].step}–{judged.records[-1].step}")
    facts.append(_STATES.get(judged.state, judged.state))
    routing = _ROUTINGS.get(workflow.routing, workflow.routing) if len(parts) > 1 else ""
    facts += [", ".join(filter(None, (f"workflow {workflow.name}", routing))), " + ".join(parts)]
    header = judged.header
    known = (("trainer", header.host), ("task", header.task), ("scale", header.scale))
    facts += [f"{name} {value}" for name, value in known if value]
    if judged.header.seed is not None:
        facts.append(f"seed {judged.header.seed}")
    return tuple(facts)


def _texts_of_two(a: JudgedRun, b: JudgedRun) -> tuple[Block, ...]:
    """Two runs are meant to be compared: their texts side by side."""
    links = (f"{page_of(a.key)}#{a.key}", f"{page_of(b.key)}#{b.key}")
    pairing = pairing_of_runs(a, b, links)
    return (Diffs("overview-diffs", (pairing,)) if pairing.diffs else Note(pairing.absent),)
