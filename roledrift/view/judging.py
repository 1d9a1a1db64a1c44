"""Judge runs that were not judged while they were recorded, in a separate process."""

from __future__ import annotations

import multiprocessing
import os
import signal
from dataclasses import dataclass
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path

from roledrift.errors import RoleDriftError
from roledrift.judgement import Alert, Incident
from roledrift.store.glance import Stamp


@dataclass(frozen=True, slots=True)
class Judgement:
    """Outcome and headline of a run, with its incidents.

    Attributes:
        outcome: As :class:`roledrift.detect.conclusion.Conclusion` has it, or ``unreadable``.
        incidents: The worst first; ``alerts``: those that a replay raised.
    """

    outcome: str
    sentence: str
    incidents: tuple[Incident, ...] = ()
    alerts: tuple[Alert, ...] = ()


def judge(path: Path) -> Judgement:
    """Judge a run; an error becomes the sentence of the judgement."""
    from roledrift.analysis.runs import open_run

    try:
        run = open_run(path)
        verdict = run.verdict
        return Judgement(verdict.outcome, verdict.sentence, run.incidents, run.alerts)
    except (RoleDriftError, OSError) as error:
        return Judgement("unreadable", str(error))


class ImmediateJudge:
    """Judges a run when asked; for copies, which are made once."""

    def result(self, path: Path, now: Stamp) -> Judgement | None:
        """Return the judgement of a run."""
        del now
        return judge(path)


class BackgroundJudge:
    """Judges runs one after another in the background, so that the page never waits.

    A run that goes on is judged anew, but never twice at once.
    """

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._asked: dict[Path, tuple[Stamp, AsyncResult[Judgement]]] = {}
        self._results: dict[Path, Judgement] = {}

    def result(self, path: Path, now: Stamp) -> Judgement | None:
        """Return the latest judgement of a run, and ask for a new one if its files have changed."""
        asked = self._asked.get(path)
        done = asked is not None and asked[1].ready()
        if asked is not None and done:
            self._results[path] = asked[1].get()
        if asked is None or (done and asked[0] != now):
            if self._pool is None:
                self._pool = multiprocessing.get_context("spawn").Pool(1, _begin)
            self._asked[path] = (now, self._pool.apply_async(judge, (path,)))
        return self._results.get(path)

    def close(self) -> None:
        """Stop judging at once."""
        if self._pool is not None:
            self._pool.terminate()


def _begin() -> None:
    """Let the page go first, and leave Ctrl-C to the process that serves it."""
    os.nice(10)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
