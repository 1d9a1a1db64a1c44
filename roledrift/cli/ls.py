"""``roledrift ls``: what is in a folder of runs."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from roledrift.cli import console
from roledrift.errors import RoleDriftError
from roledrift.notify.console import printable
from roledrift.records import Alert
from roledrift.store.reader import find_runs, open_run
from roledrift.store.silence import silent_for


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the list.

    Attributes:
        run: Path below the folder that was asked for.
        state: ``finished``, ``open``, ``silent`` (open, but nothing came for longer than its steps
            and pauses take), ``empty`` or ``unreadable``.
        level: Worst level among the recorded alerts that are not closed; empty if there is none.
        finding: What that alert found, in which role and since when; or why the run is unreadable.
    """

    run: str
    path: str
    workflow: str = ""
    routing: str = ""
    steps: int = 0
    last_step: int | None = None
    state: str = "unreadable"
    level: str = ""
    finding: str = ""


def ls(folder: str, *, as_json: bool = False) -> int:
    """List runs.

    Args:
        folder: Folder of runs, or one run.
        as_json: Print one JSON document instead of a table.

    Returns:
        The exit code: 0, 2 if the folder cannot be read, 3 if no run is in it.
    """
    try:
        found = find_runs(folder)
    except RoleDriftError as error:
        return console.fail(console.failure_of(error, folder), as_json=as_json)
    rows = [_row(path, folder) for path in found]
    if as_json:
        console.write_json({"schema": "roledrift.ls/1", "runs": [asdict(row) for row in rows]})
    elif rows:
        _print(rows)
    else:
        console.say(f"{folder}: no run found here")
    return console.CLEAN if rows else console.INCONCLUSIVE


def _row(path: Path, folder: str) -> Row:
    base = Path(folder)
    name = path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)
    name = path.name if name == "." else name
    try:
        run = open_run(path)
        steps = run.steps()
        worst = _worst(run.alerts())
        state: str = run.state
        if silent_for(steps, state=state, now=time.time()) is not None:
            state = "silent"
    except RoleDriftError as error:
        return Row(name, str(path), finding=str(error))
    level = worst.level if worst else ""
    finding = f"{worst.role} {worst.finding} since step {worst.onset}" if worst else ""
    if state == "silent":
        level = level or "WARN"
        finding += f"{', ' if finding else ''}silent since step {steps[-1].step} (crashed?)"
    return Row(
        run=name,
        path=str(run.path),
        workflow=run.header.workflow.name,
        routing=run.header.workflow.routing,
        steps=len(steps),
        last_step=steps[-1].step if steps else None,
        state=state,
        level=level,
        finding=finding,
    )


def _worst(alerts: list[Alert]) -> Alert | None:
    latest = {alert.id: alert for alert in alerts}
    standing = [alert for alert in latest.values() if alert.state != "closed"]
    return max(standing, key=lambda one: ("INFO", "WARN", "ERROR").index(one.level), default=None)


def _print(rows: list[Row]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("run", "workflow", "routing", "steps", "state", "level", "finding"):
        table.add_column(
            heading, justify="right" if heading == "steps" else "left", overflow="fold"
        )
    for row in rows:
        cells = (
            row.run,
            row.workflow,
            row.routing,
            str(row.steps),
            row.state,
            row.level,
            row.finding,
        )
        table.add_row(*(Text(printable(cell)) for cell in cells))
    console.print_table(table)
