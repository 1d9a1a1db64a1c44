"""Which of several runs at one place is meant: ``project.db#brave-fox``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from roledrift.errors import StoreError
from roledrift.ingest.form import Job
from roledrift.ingest.tree import Found

_NAMED = 12
"""How many runs a message names."""


@dataclass(frozen=True, slots=True)
class RunPath:
    """A path, and the run there that is meant.

    Attributes:
        run: Its name or id; empty for all that are there.
    """

    path: Path
    run: str = ""


def place(text: str) -> RunPath:
    """What a user's path names; ``#`` separates a run from the path unless a file is called so."""
    path, mark, run = text.rpartition("#")
    if mark and run and not Path(text).exists() and Path(path).exists():
        return RunPath(Path(path), run)
    return RunPath(Path(text))


def chosen(place: RunPath, runs: list[Found]) -> list[Found]:
    """The runs at a place that are meant.

    Raises:
        StoreError: If there is none of that name, or there are several.
    """
    if not place.run:
        return runs
    by_id = [run for run in runs if any(place.run in source.part for source in run.sources)]
    same = by_id or [run for run in runs if run.name == place.run or _called(run) == place.run]
    if len(same) == 1:
        return same
    if same:
        ids = ", ".join(f"{place.path}#{run.sources[0].part[-1]}" for run in same[:_NAMED])
        raise StoreError(f"{place.path}: holds {len(same)} runs called {place.run!r}: say {ids}")
    held = f"holds {_listed(run.name for run in runs)}" if runs else "does not name its runs"
    raise StoreError(f"{place.path}: holds no run {place.run!r}; it {held}")


def _called(run: Found) -> str:
    return run.sources[0].name


def only(job: Job, runs: Mapping[str, str]) -> str:
    """The id of the run that a reader is to read.

    Raises:
        StoreError: If it holds none, or several and nobody said which.
    """
    if job.part:
        return job.part[0]
    if len(runs) == 1:
        return next(iter(runs))
    if not runs:
        raise StoreError(f"{job.shown}: holds no run with a logged number")
    raise StoreError(
        f"{job.shown}: holds {len(runs)} runs ({_listed(runs.values())}); name one of them, as in "
        f"'{job.shown}#{next(iter(runs.values()))}'"
    )


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more
