"""A folder of runs: an index, a page per run, tables as files; one run in memory at a time."""

from __future__ import annotations

import gc
import multiprocessing
import multiprocessing.context
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from roledrift import __version__
from roledrift.config import Config
from roledrift.report.build import build_run, cleaned, command_of, key_of, runs_in
from roledrift.report.index import overview
from roledrift.report.model import Report, RunReport
from roledrift.report.summary import Summary, summarise
from roledrift.report.view import Sharing, load
from roledrift.report.write import write_page, write_report

_GARBAGE = 1_000_000

PAGES = "runs"
"""Folder of the runs' own pages, beside ``index.html``."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run to be read and written.

    Attributes:
        out: Directory of the report.
        formats: ``html`` writes its page, ``json`` its report as data.
    """

    path: Path
    key: str
    out: Path
    command: str
    config: Config | None
    sharing: Sharing | None
    formats: tuple[str, ...]


def write_folder(  # noqa: PLR0913 - what is written, how it is judged, how the work is shared
    paths: Sequence[Path | str] | Path | str,
    out_dir: Path | str,
    formats: Sequence[str] = ("html", "md", "json"),
    *,
    config: Config | None = None,
    sharing: Sharing | None = None,
    command: str | None = None,
    by: Sequence[str] = (),
    jobs: int = 1,
    seen: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Write the report on a folder of runs: its index, and a page per run.

    Args:
        paths: Run directories, or folders that hold some.
        out_dir: Directory; made if it is not there.
        formats: As for :func:`~roledrift.report.write.write_report`.
        config: Judge with this configuration instead of each run's own.
        sharing: What may be shown; None is everything.
        command: How the report says it was made; None makes one of ``paths``.
        by: What the runs of one curve of the index have in common; see
            :func:`~roledrift.report.index.overview`.
        jobs: Processes that share the work.
        seen: Told after every run how many are done, and of how many.

    Returns:
        The files of the index; the pages and the data of the runs are in ``runs/``.

    Raises:
        ConfigError: If no run has a name in ``by``.
        StoreError: If there is no run, or the directory cannot be written.
        SchemaError: If a run was written by a newer version.
    """
    given, found = runs_in(paths)
    out, command = Path(out_dir), command or command_of(given)
    todo = [
        Job(path, key_of(at, path), out, command_of([path]), config, sharing, tuple(formats))
        for at, path in enumerate(found)
    ]
    done: list[tuple[Summary, RunReport]] = []
    with _workers(min(jobs, len(todo))) as run_all:
        for result in run_all(todo):
            done.append(result)
            if seen is not None:
                seen(len(done), len(todo))
    summaries = [summary for summary, _ in done]
    index = Report(
        title=f"{len(done)} runs",
        version=__version__,
        command=command,
        overview=overview(summaries, by),
        runs=tuple(run for _, run in done),
    )
    return write_report(cleaned(index, sharing), out, formats)


@contextmanager
def _workers(jobs: int) -> Iterator[Callable[[Sequence[Job]], Iterator[tuple[Summary, RunReport]]]]:
    if jobs < 2:
        yield lambda todo: map(one, todo)
        return
    with ProcessPoolExecutor(jobs, mp_context=_fresh(), initializer=_begin) as pool:
        yield lambda todo: pool.map(one, todo)


def _fresh() -> multiprocessing.context.BaseContext:
    """Fresh processes: a fork of a process with threads (progress bars, torch) can hang.

    Where they can be forked from a process that only imported what is needed, that is paid once.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    start = multiprocessing.get_context("forkserver")
    start.set_forkserver_preload(["__main__", __name__, "roledrift.report.html", "pyarrow.parquet"])
    return start


def _begin() -> None:
    # A worker reads a run, writes it and forgets it: looking for cycles meanwhile finds none.
    gc.disable()
    gc.freeze()


def one(job: Job) -> tuple[Summary, RunReport]:
    """Read, judge and write one run; what the index needs of it."""
    found = _one(job)
    if not gc.isenabled() and sum(gc.get_count()) > _GARBAGE:
        # Only now: while the run was alive, looking at all of it took a tenth of the time.
        gc.collect()
    return found


def _one(job: Job) -> tuple[Summary, RunReport]:
    page, body = (
        f"{PAGES}/{job.key}.{name}" if name in job.formats else "" for name in ("html", "json")
    )
    view = load(job.path, job.key, job.config, job.sharing)
    run = build_run(view, job.command)
    if page or body:
        alone = Report(run.name, __version__, job.command, (), (run,), home="../index.html")
        alone = cleaned(alone, job.sharing)
        for name in filter(None, (page, body)):
            write_page(alone, job.out / name)
    short = replace(run, sections=(), page=page or "index.html", data=body)
    return summarise(view, run, page), short


def processes() -> int:
    """Processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1
