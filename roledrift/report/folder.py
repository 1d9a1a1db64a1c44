"""The report on a folder of runs: an index and a page per run, with one run in memory at a time."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from roledrift.config import Config, CostsConfig
from roledrift.errors import RoleDriftError
from roledrift.report.build import (
    PAGES,
    build_run,
    cleaned,
    command_of,
    key_of,
    report_of_run,
    report_of_runs,
    runs_in,
)
from roledrift.report.sweep.overviews import measured
from roledrift.report.sweep.summary import Result, Unreadable, summarise
from roledrift.report.view import Sharing, load
from roledrift.report.worker_pool import end_with_parent, start_context
from roledrift.report.write import write_page, write_report

_GARBAGE = 1_000_000


@dataclass(frozen=True, slots=True)
class FolderOptions:
    """What to write about a folder, how to judge its runs, and how to share the work.

    Attributes:
        formats: As for :func:`~roledrift.report.write.write_report`.
        config: Judge with this configuration instead of each run's own.
        sharing: What may be shown; None is everything.
        command: How the report says it was made; empty makes one of the paths.
        by: What the runs of one curve of the index have in common; see
            :func:`~roledrift.report.sweep.folder_overview.overview`.
        jobs: Processes that share the work.
        paper: With the paper's tables and figures even if no run is of its grid.
        costs: Number of GPUs and price of a GPU hour, if the run does not say.
    """

    formats: tuple[str, ...] = ("html", "md", "json")
    config: Config | None = None
    sharing: Sharing | None = None
    command: str = ""
    by: tuple[str, ...] = ()
    jobs: int = 1
    paper: bool = False
    costs: CostsConfig | None = None


@dataclass(frozen=True, slots=True)
class RunTask:
    """One run to read, judge and write.

    Attributes:
        out: Directory of the report.
        command: The command that makes the run's page alone.
        options: As for the folder; ``html`` writes its page, ``json`` its report as data.
    """

    path: Path
    key: str
    out: Path
    command: str
    options: FolderOptions


def write_folder(
    paths: Sequence[Path | str] | Path | str,
    out_dir: Path | str,
    options: FolderOptions | None = None,
    *,
    seen: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Write the report on a folder of runs: its index, and a page per run.

    Args:
        paths: Run directories, or folders that hold some.
        out_dir: Directory; made if it is not there.
        options: What to write and how; None for pages, Markdown and JSON with everything shown.
        seen: Called after every run with the number done and the total.

    Returns:
        The files of the index; the pages and the data of the runs are in ``runs/``.

    Raises:
        ConfigError: If no run has a name in ``by``.
        StoreError: If there is no run, if none can be read, or the directory cannot be written.
    """
    options = options or FolderOptions()
    given, run_paths = runs_in(paths)
    out = Path(out_dir)
    todo = [
        RunTask(path, key_of(at, path), out, command_of([path]), options)
        for at, path in enumerate(run_paths)
    ]
    results: list[Result] = []
    with _workers(min(options.jobs, len(todo))) as run_all:
        for result in run_all(todo):
            results.append(result)
            if seen is not None:
                seen(len(results), len(todo))
    command = options.command or command_of(given)
    index = report_of_runs(results, command, options.by, paper=options.paper)
    return write_report(cleaned(index, options.sharing), out, options.formats)


@contextmanager
def _workers(jobs: int) -> Iterator[Callable[[Sequence[RunTask]], Iterator[Result]]]:
    if jobs < 2:
        yield lambda todo: map(write_run, todo)
        return
    with ProcessPoolExecutor(jobs, mp_context=start_context(), initializer=_begin) as pool:

        def run_all(todo: Sequence[RunTask]) -> Iterator[Result]:
            results = pool.map(write_run, todo)
            # The index needs it at the end, when nobody else works.
            import roledrift.report.html

            _ = roledrift.report.html
            return results

        yield run_all


def _begin() -> None:
    end_with_parent()
    # A worker reads a run, writes it and forgets it: looking for cycles meanwhile finds none.
    gc.disable()
    gc.freeze()


def write_run(task: RunTask) -> Result:
    """Read, judge and write one run, and return what the index needs of it."""
    result = _write_run(task)
    if not gc.isenabled() and sum(gc.get_count()) > _GARBAGE:
        # Only now: while the run was alive, looking at all of it took a tenth of the time.
        gc.collect()
    return result


def _write_run(task: RunTask) -> Result:
    page, body = (
        f"{PAGES}/{task.key}.{name}" if name in task.options.formats else ""
        for name in ("html", "json")
    )
    try:
        view = load(
            task.path, task.key, task.options.config, task.options.sharing, task.options.costs
        )
    except (RoleDriftError, OSError) as error:
        return Unreadable(str(task.path), str(error))
    run = build_run(view, task.command)
    if page or body:
        alone = report_of_run(run, task.command, home="../index.html")
        alone = cleaned(alone, task.options.sharing)
        for name in filter(None, (page, body)):
            write_page(alone, task.out / name)
    short = replace(run, sections=(), page=page or "index.html", data=body)
    return summarise(view, run, page, measured(view)), short
