"""``roledrift ls``: list the runs in a folder."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from roledrift.analysis.runs import Run
from roledrift.cli import console
from roledrift.cli.findings import silence
from roledrift.errors import RoleDriftError
from roledrift.judgement import Incident
from roledrift.records import StepRecord
from roledrift.report.statuses import urgency
from roledrift.store.reader import StoredRun, find_runs, open_run
from roledrift.store.silence import silent_for
from roledrift.store.starts import concluded


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the list.

    Attributes:
        run: Path below the folder that was asked for.
        state: ``finished``, ``open``, ``silent`` (open, but nothing came for longer than its steps
            and pauses take), ``empty`` or ``unreadable``.
        outcome: Severity of the incident that the run is about, ``suspicious`` if it has passed or
            the run is silent; without an incident ``clean`` or ``no verdict`` once the run has
            ended, and empty while it goes on.
        role: Role of the incident; likewise ``finding`` and ``onset``.
        sentence: The incident as every output tells it; or why the run is silent or unreadable.
    """

    run: str
    path: str
    workflow: str = ""
    routing: str = ""
    steps: int = 0
    last_step: int | None = None
    state: str = "unreadable"
    outcome: str = ""
    role: str = ""
    finding: str = ""
    onset: int | None = None
    sentence: str = ""


def ls(folder: str, *, as_json: bool = False) -> int:
    """List the runs in a folder, the worst first; or one run.

    Returns:
        The exit code: 0, 2 if the folder cannot be read, 3 if no run is in it.
    """
    try:
        runs = find_runs(folder)
    except RoleDriftError as error:
        return console.fail(console.failure_of(error, folder), as_json=as_json)
    keyed = sorted((_row(path, folder) for path in runs), key=lambda pair: pair[0])
    rows = [row for _, row in keyed]
    if as_json:
        console.write_json({"schema": "roledrift.ls/2", "runs": [asdict(row) for row in rows]})
    elif rows:
        _print(rows)
    else:
        console.say(f"{folder}: no run found here or below")
    return console.CLEAN if rows else console.INCONCLUSIVE


_Key = tuple[int, bool, float]


def _row(path: Path, folder: str) -> tuple[_Key, Row]:
    """A run, with the key that puts the worst first."""
    base = Path(folder)
    name = path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)
    name = path.name if name == "." else name
    try:
        run = open_run(path)
        steps = run.steps()
        incident = next(iter(Run(run).incidents), None)
        state: str = run.state
        quiet = silent_for(steps, state=state, now=time.time())
        outcome, sentence = _outcome(run, steps, incident, quiet)
    except RoleDriftError as error:
        why = str(error).removeprefix(str(path)).lstrip("/: ")
        return urgency("", None), Row(name, str(path), sentence=why)
    row = Row(
        run=name,
        path=str(run.path),
        workflow=run.header.workflow.name,
        routing=run.header.workflow.routing,
        steps=len(steps),
        last_step=steps[-1].step if steps else None,
        state=state if quiet is None else "silent",
        outcome=outcome,
        role="" if incident is None else incident.role,
        finding="" if incident is None else incident.finding,
        onset=None if incident is None else incident.onset,
        sentence=sentence,
    )
    return urgency(outcome, incident), row


def _outcome(
    run: StoredRun, steps: list[StepRecord], incident: Incident | None, quiet: float | None
) -> tuple[str, str]:
    """What a run is, and the sentence that says it."""
    if incident is not None:
        return incident.outcome, incident.sentence
    if quiet is not None:
        return "suspicious", silence(steps[-1].step, quiet).text
    if run.state == "open" and run.judged:
        return "", f"No incident in {len(steps)} steps so far."
    known = concluded(Path(run.path)) if run.judged else None
    if known is not None:
        return known
    verdict = Run(run).verdict
    return verdict.outcome, verdict.sentence


def _print(rows: list[Row]) -> None:
    heads = ("run", "workflow", "routing", "steps", "state", "outcome", "what happened")
    cells = [(*_cells(row), row.state, row.outcome, row.sentence) for row in rows]
    console.print_rows(cells, heads=heads)


def _cells(row: Row) -> tuple[str, str, str, str]:
    return row.run, row.workflow, row.routing, str(row.steps)
