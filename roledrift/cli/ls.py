"""``roledrift ls``: what is in a folder of runs."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path

from roledrift.cli import console
from roledrift.errors import RoleDriftError
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


STATES = ("open", "finished", "silent", "empty", "unreadable")
LEVELS = ("", "INFO", "WARN", "ERROR")


def ls(
    folder: str, *, state: str = "", sort: str = "path", limit: int = 0, as_json: bool = False
) -> int:
    """List runs.

    Args:
        folder: Folder of runs, or one run.
        state: Comma-separated out of :data:`STATES`: only runs in one of these. Empty for all.
        sort: ``path``; ``level``, the worst first; or ``steps``, the longest first.
        limit: At most so many, after sorting; 0 for all.
        as_json: Print one JSON document instead of a table.

    Returns:
        The exit code: 0, 2 if the folder cannot be read, 3 if no such run is in it.
    """
    wanted = [name.strip() for name in state.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in STATES]
    if unknown:
        near = get_close_matches(unknown[0], STATES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        message = f"--state {unknown[0]!r}: choose from {','.join(STATES)}.{hint}"
        return console.fail(
            console.failure("usage", message, "roledrift ls --help"), as_json=as_json
        )
    try:
        found = find_runs(folder)
    except RoleDriftError as error:
        return console.fail(console.failure_of(error, folder), as_json=as_json)
    rows = [_row(path, folder) for path in found]
    rows = [row for row in rows if not wanted or row.state in wanted]
    if sort == "level":
        rows.sort(key=lambda row: -LEVELS.index(row.level))
    elif sort == "steps":
        rows.sort(key=lambda row: -row.steps)
    shown = rows[:limit] if limit else rows
    if as_json:
        body = {"runs": [asdict(row) for row in shown], "truncated": len(shown) < len(rows)}
        console.write_json({"schema": "roledrift.ls/1", **body})
    elif shown:
        _print(shown)
        if len(shown) < len(rows):
            console.say(f"{len(rows) - len(shown)} more of {len(rows)} runs; --limit 0 for all")
    else:
        what = f"no run that is {' or '.join(wanted)}" if wanted and found else "no run"
        console.say(f"{folder}: {what} found here or below")
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
        return Row(name, str(path), finding=str(error).removeprefix(str(path)).lstrip("/: "))
    level = worst.level if worst else ""
    finding = (
        f"{console.role(worst.role)} {worst.finding} since step {worst.onset}" if worst else ""
    )
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
    heads = ("run", "workflow", "routing", "steps", "state", "level", "finding")
    cells = [(*_cells(row), row.state, row.level, row.finding) for row in rows]
    console.print_rows(cells, heads=heads)


def _cells(row: Row) -> tuple[str, str, str, str]:
    return row.run, row.workflow, row.routing, str(row.steps)
