"""The runs below some folders, worst first, as they appear and disappear."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from roledrift.detect.conclusion import conclude
from roledrift.errors import RoleDriftError, StoreError
from roledrift.judgement import Incident
from roledrift.report.sanitise import clean
from roledrift.report.statuses import urgency
from roledrift.store.glance import Glance, Stamp, glance, stamp
from roledrift.store.reader import find_runs
from roledrift.view import documents
from roledrift.view.follow import FollowedRun
from roledrift.view.judging import BackgroundJudge, ImmediateJudge, Judgement

IN_MEMORY = 8
"""Runs whose steps are kept at most: a long one takes a hundred megabytes."""

_NOTHING = Judgement("", "")


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run in the list.

    Attributes:
        key: How the page asks for it; a name never becomes part of an address.
        name: Path below the folder; ``run`` is what its header calls it.
        state: ``open``, ``finished``, ``empty`` or ``unreadable``.
        outcome: Empty while it is not known.
        time: When the last step was written, seconds since 1970; None if unknown.
        version: Changes with every line that is written.
    """

    key: str
    name: str
    run: str = ""
    workflow: str = ""
    routing: str = ""
    roles: tuple[str, ...] = ()
    state: str = "unreadable"
    last_step: int | None = None
    time: float | None = None
    outcome: str = ""
    sentence: str = ""
    role: str = ""
    finding: str = ""
    onset: int | None = None
    version: str = ""


class Folder:
    """Runs below some folders.

    Args:
        paths: Runs or folders of runs on this machine.
        judge: Judges runs that were not judged while they were recorded; None leaves them so.
        shown: What the paths are called on the page; None calls them what they are.

    Raises:
        StoreError: If a path is a URL, or there is nothing.
    """

    def __init__(
        self,
        paths: Sequence[str],
        judge: BackgroundJudge | ImmediateJudge | None = None,
        shown: Sequence[str] | None = None,
    ) -> None:
        for path in paths:
            find_runs(path)
        self.paths = tuple(paths)
        self._shown = dict(zip(paths, shown or paths, strict=True))
        self._judge = judge
        self._lock = threading.Lock()
        self._seen: dict[Path, tuple[Stamp, Glance | str]] = {}
        self._judgements: dict[Path, Judgement] = {}
        self._followed: dict[str, FollowedRun] = {}

    def listing(self) -> dict[str, Any]:
        """Return the document of all runs, worst first."""
        with self._lock:
            names, problems = self._find()
            self._seen = {path: self._seen.get(path, ((), "")) for path in names}
            rows = sorted(
                (self._row(path, name) for path, name in names.items()), key=lambda pair: pair[0]
            )
            self._followed = {key: run for key, run in self._followed.items()
                              if run.path in names}  # fmt: skip
        runs = [documents.harmless(asdict(row)) for _, row in rows]
        body = {
            "folder": clean(", ".join(self._shown.values())),
            "problems": documents.problems(problems),
            "runs": runs,
        }
        version = hashlib.sha256(documents.dumps(body)).hexdigest()[:16]
        return {"schema": documents.SCHEMA, "version": version, **body}

    def document(
        self,
        key: str,
        wanted: Collection[str] | None = None,
        known: str = "",
        *,
        slots: bool = True,
    ) -> dict[str, Any]:
        """As :meth:`FollowedRun.document`; raises like :meth:`run`."""
        run = self.run(key)
        return run.document(self._judgements.get(run.path, _NOTHING), wanted, known, slots=slots)

    def pairs(self, key: str, incident_id: str) -> dict[str, Any]:
        """As :meth:`FollowedRun.pairs`, of the incident with an id; raises like :meth:`run`."""
        run = self.run(key)
        for incident in self._judgements.get(run.path, _NOTHING).incidents:
            if incident.id == incident_id:
                return run.pairs(incident)
        return {"role": "", "pairs": [], "note": "This incident is no longer part of the run."}

    def run(self, key: str) -> FollowedRun:
        """Return the run with this key.

        Raises:
            StoreError: If there is none, or no longer.
        """
        with self._lock:
            run = self._followed.pop(key, None)
            if run is None:
                path = next((path for path in self._seen if key_of(path) == key), None)
                if path is None:
                    raise StoreError("this run is no longer there")
                run = FollowedRun(path)
            self._followed[key] = run
            while len(self._followed) > IN_MEMORY:
                del self._followed[next(iter(self._followed))]
            return run

    def _find(self) -> tuple[dict[Path, str], list[str]]:
        names: dict[Path, str] = {}
        problems = []
        for given in self.paths:
            try:
                paths = find_runs(given)
            except RoleDriftError as error:
                problems.append(str(error))
                continue
            for path in paths:
                below = path.relative_to(given).as_posix() if path.is_relative_to(given) else "."
                prefix = f"{self._shown[given]}/" if len(self.paths) > 1 and below != "." else ""
                names[path] = path.resolve().name if below == "." else prefix + below
        if not names and not problems:
            where = ", ".join(self._shown.values())
            problems.append(f"{where}: no run found here or below yet; one appears when it starts")
        return names, problems

    def _row(self, path: Path, name: str) -> tuple[tuple[object, ...], RunRow]:
        now = stamp(path)
        known, seen = self._seen[path]
        if known != now or not now:
            try:
                seen = glance(path)
            except RoleDriftError as error:
                seen = str(error)
            self._seen[path] = (now, seen)
        version = hashlib.sha256(repr(now).encode()).hexdigest()[:16]
        if isinstance(seen, str):
            row = RunRow(key_of(path), name, outcome="unreadable", sentence=seen, version=version)
            return (*urgency("unreadable", None), name), row
        judged = self._judgements[path] = self._judged(path, now, seen)
        incident = judged.incidents[0] if judged.incidents else None
        row = _row(path, name, version, seen, judged, incident)
        return (*urgency(judged.outcome, incident), name), row

    def _judged(self, path: Path, now: Stamp, seen: Glance) -> Judgement:
        if seen.last_step is None:
            return Judgement("no verdict", "No step was recorded.")
        stored = None
        if seen.incidents:
            first = conclude((), seen.incidents, 1)
            stored = Judgement(first.outcome, first.sentence, seen.incidents)
            if seen.exact:
                return stored
        judged = None if self._judge is None else self._judge.result(path, now)
        waiting = "No incident so far." if seen.judged else "Not judged yet."
        return judged or stored or Judgement("", waiting)


def _row(
    path: Path, name: str, version: str, seen: Glance, judged: Judgement, incident: Incident | None
) -> RunRow:
    header = seen.header
    state = "empty" if seen.last_step is None else "finished" if seen.ended else "open"
    return RunRow(
        key=key_of(path),
        name=name,
        run=header.run,
        workflow=header.workflow.name,
        routing=header.workflow.routing,
        roles=header.workflow.role_names,
        state=state,
        last_step=seen.last_step,
        time=_seconds(seen.time),
        outcome=judged.outcome,
        sentence=judged.sentence,
        role="" if incident is None else incident.role,
        finding="" if incident is None else incident.finding,
        onset=None if incident is None else incident.onset,
        version=version,
    )


def key_of(path: Path) -> str:
    """Make the key of a run: hexadecimal digits, whatever its path is."""
    return hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _seconds(time: str) -> float | None:
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return None
