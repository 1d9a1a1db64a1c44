"""The report on a folder of runs: an index and a page per run, with one run in memory at a time."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
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
from roledrift.report.judged_run import Sharing, load
from roledrift.report.sweep.overviews import measured
from roledrift.report.sweep.summary import Result, Unreadable, summarise
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
    todo = [(path, key_of(at, path)) for at, path in enumerate(run_paths)]
    results: list[Result] = []
    with _workers(min(options.jobs, len(todo))) as run_all:
        for result in run_all(partial(write_run, out=out, options=options), todo):
            results.append(result)
            if seen is not None:
                seen(len(results), len(todo))
    command = options.command or command_of(given)
    index = report_of_runs(results, command, options.by, paper=options.paper)
    return write_report(cleaned(index, options.sharing), out, options.formats)


@contextmanager
def _workers(jobs: int) -> Iterator[Callable[..., Iterator[Result]]]:
    """What maps the work over runs: in this process, or in as many others as there are jobs."""
    if jobs < 2:
        yield map
        return
    with ProcessPoolExecutor(jobs, mp_context=start_context(), initializer=_begin) as pool:
        yield pool.map


def _begin() -> None:
    end_with_parent()
    # A worker reads a run, writes it and forgets it: looking for cycles meanwhile finds none.
    gc.disable()
    gc.freeze()


def write_run(run: tuple[Path, str], *, out: Path, options: FolderOptions) -> Result:
    """Read, judge and write one run, and return what the index needs of it.

    Args:
        run: Its directory and its key.
        out: Directory of the report.
        options: As for the folder; ``html`` writes its page, ``json`` its report as data.
    """
    result = _write_run(*run, out, options)
    if not gc.isenabled() and sum(gc.get_count()) > _GARBAGE:
        # Only now: while the run was alive, looking at all of it took a tenth of the time.
        gc.collect()
    return result


def _write_run(path: Path, key: str, out: Path, options: FolderOptions) -> Result:
    page, body = (
        f"{PAGES}/{key}.{name}" if name in options.formats else "" for name in ("html", "json")
    )
    try:
        judged = load(path, key, options.config, options.sharing, options.costs)
    except (RoleDriftError, OSError) as error:
        return Unreadable(str(path), str(error))
    command = command_of([path])
    run = build_run(judged, command)
    if page or body:
        alone = cleaned(report_of_run(run, command, home="../index.html"), options.sharing)
        for name in filter(None, (page, body)):
            write_page(alone, out / name)
    short = replace(run, sections=(), page=page or "index.html", data=body)
    return summarise(judged, run, page, measured(judged)), short
