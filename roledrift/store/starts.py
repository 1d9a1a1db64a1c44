"""How runs of a folder started: a small file per run, for the runs that come after it.

``starts.json`` is written when a run ends. It says which kind of run it was, what the run was in
the end, and where each stream of statistics started.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from roledrift.judgement import Alert, Incident
from roledrift.records import RunHeader, Sample, StepRecord
from roledrift.store import layout
from roledrift.store.regular import content

_MOST_BYTES = 1 << 20
_MOST_RUNS = 20
_MOST_SEEN = 200
_GOOD = ("clean", "suspicious")

Starts = Mapping[str, Mapping[str, float]]


class StartsWriter:
    """Writes the starts of a run when it ends; a :class:`~roledrift.protocols.Sink`."""

    def __init__(
        self, path: Path, header: RunHeader, summary: Callable[[], tuple[str, str, Starts]]
    ) -> None:
        self._path, self._header, self._summary = path, header, summary

    def write_step(self, record: StepRecord) -> None:
        """Nothing is kept per step."""

    def write_alert(self, alert: Alert) -> None:
        """Nothing is kept per alert."""

    def write_incident(self, incident: Incident) -> None:
        """Nothing is kept per incident."""

    def write_samples(self, step: int, samples: Sequence[Sample]) -> None:
        """Nothing is kept of texts."""

    def close(self) -> None:
        """Write the file, in one go."""
        outcome, sentence, starts = self._summary()
        summary = {"outcome": outcome, "sentence": sentence}
        body = {"v": 1, "kind": "starts", **summary, **_identity(self._header)}
        draft = self._path / f".{layout.STARTS}.tmp"
        draft.write_text(json.dumps(body | {"starts": starts}), encoding="utf-8")
        os.replace(draft, self._path / layout.STARTS)


def concluded(path: Path) -> tuple[str, str] | None:
    """Outcome and sentence of a run when it ended; None if none were kept or can be read."""
    body = _read(path / layout.STARTS)
    outcome, sentence = body.get("outcome"), body.get("sentence")
    return (outcome, sentence) if isinstance(outcome, str) and isinstance(sentence, str) else None


def earlier_starts(path: Path, header: RunHeader) -> list[Starts]:
    """Starts of the newest healthy runs beside ``path`` that are of the same kind.

    What cannot be read is passed over: another run's file must not keep this one from starting.
    """
    try:
        beside = [folder for folder in path.resolve().parent.iterdir() if folder != path.resolve()]
    except OSError:
        return []
    files = [
        path
        for folder in sorted(beside)[-_MOST_SEEN:]
        if (path := folder / layout.STARTS).is_file()
    ]
    starts_of_runs = []
    for file in sorted(files, key=_age, reverse=True):
        body = _read(file)
        same = all(body.get(key) == value for key, value in _identity(header).items())
        if same and body.get("outcome") in _GOOD and (starts := _numbers(body.get("starts"))):
            starts_of_runs.append(starts)
        if len(starts_of_runs) == _MOST_RUNS:
            break
    return starts_of_runs


def _identity(header: RunHeader) -> dict[str, Any]:
    workflow = header.workflow
    return {
        "workflow": workflow.name,
        "roles": [[role.name, role.slots] for role in workflow.roles],
        "policies": list(workflow.policies),
        "host": header.host,
        "task": header.task,
        "scale": header.scale,
    }


def _age(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return -math.inf


def _read(file: Path) -> dict[str, Any]:
    try:
        body = json.loads(content(file, _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _numbers(body: object) -> Starts:
    if not isinstance(body, dict):
        return {}
    return {
        str(role): {str(name): float(value) for name, value in streams.items()}
        for role, streams in body.items()
        if isinstance(streams, dict)
        and all(isinstance(value, int | float) for value in streams.values())
    }
