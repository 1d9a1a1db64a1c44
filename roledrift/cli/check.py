"""``roledrift check``: the detectors, replayed over recorded runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from roledrift.cli import console
from roledrift.cli.foreign import opened
from roledrift.cli.formats import FORMATS
from roledrift.codec import plain
from roledrift.config import Config, from_mapping, load
from roledrift.detect.panel import Replay, replay
from roledrift.errors import ConfigError, RoleDriftError
from roledrift.notify.console import printable
from roledrift.records import Alert, Level, RunHeader, Verdict
from roledrift.store.reader import Run, find_runs, open_run, reference_steps
from roledrift.store.silence import silent_for

_RANK: dict[Level, int] = {"INFO": 0, "WARN": 1, "ERROR": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something at or above the level that counts.

    Attributes:
        since: First bad step; None if the detector gives none.
        state: ``open`` at the last step, or ``closed`` by then.
        id: Id of the alert; empty for a verdict that has not raised one.
    """

    role: str
    detector: str
    finding: str
    level: Level
    since: int | None
    state: Literal["open", "closed"]
    text: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """Outcome for one path.

    Attributes:
        path: As given, or as found below what was given.
        code: Exit code of this path alone.
        reason: One line for people.
        run: Name of the run; empty if none was read.
        steps: Number of steps judged.
        failed: Why the path could not be checked.
    """

    path: str
    code: int
    reason: str
    run: str = ""
    steps: int = 0
    findings: tuple[Finding, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    alerts: tuple[Alert, ...] = ()
    problems: tuple[str, ...] = ()
    failed: console.Failure | None = None


def check(
    paths: Sequence[str],
    config: Path | None,
    *,
    fail_on: Level = "WARN",
    as_json: bool = False,
    style: str = "text",
) -> int:
    """Check runs and print the outcome.

    Args:
        paths: Runs or folders of runs.
        config: TOML file to judge by; None judges each run by what it was watched with.
        fail_on: Level from which a finding counts.
        as_json: Print one JSON document instead of text.
        style: ``text``, ``json``, or one of :data:`roledrift.cli.formats.FORMATS`.

    Returns:
        The exit code: that of the worst run, in the order 2 > 1 > 3 > 0.
    """
    try:
        settings = None if config is None else load(config)
    except ConfigError as error:
        return console.fail(console.failure_of(error), as_json=as_json)
    with opened(paths) as places:
        checked = [
            replace(one, path=shown) if place != shown else one
            for shown, place in places
            for one in _below(place, settings, fail_on)
        ]
    code = console.worst(one.code for one in checked)
    if as_json or style == "json":
        console.write_json(_document(checked, code))
    elif style in FORMATS:
        sys.stdout.write(FORMATS[style](checked))
    else:
        _print(checked)
    return code


def _below(path: str, config: Config | None, fail_on: Level) -> Iterable[Checked]:
    try:
        found = find_runs(path)
    except RoleDriftError as error:
        yield _unreadable(path, error)
        return
    if not found:
        yield Checked(path, console.INCONCLUSIVE, "no run found here")
    for one in found:
        try:
            yield check_run(open_run(one), config, fail_on=fail_on)
        except RoleDriftError as error:
            yield _unreadable(str(one), error)


def _unreadable(path: str, error: RoleDriftError) -> Checked:
    failed = console.failure_of(error, path)
    return Checked(path, console.FAILED, failed.message, failed=failed)


def check_run(
    run: Run, config: Config | None = None, *, fail_on: Level = "WARN", now: float | None = None
) -> Checked:
    """Judge one run.

    Args:
        run: The run.
        config: What to judge by; None is what the run was watched with.
        fail_on: Level from which a finding counts.
        now: Seconds since 1970, to tell an open run from a silent one; None is the present.
    """
    problems = list(run.problems)
    if config is None:
        config, trouble = _watched_with(run.header)
        problems += trouble
    records = run.steps()
    workflow, host = run.header.workflow, run.header.host
    reference = reference_steps(config.baseline.reference, workflow)
    replayed = replay(records, workflow, config, reference=reference, host=host)
    problems += [f"detector {name} failed: {said}" for name, said in replayed.faults.items()]
    findings = findings_of(replayed, fail_on)
    if _RANK["WARN"] >= _RANK[fail_on]:
        quiet = silent_for(records, state=run.state, now=time.time() if now is None else now)
        findings += () if quiet is None else (_silent(records[-1].step, quiet),)
    reached = [one for one in replayed.verdicts if one.state != "no verdict"]
    needed = config.baseline.skip + config.baseline.window + 1
    judged = f"{len(reached)} of {len(replayed.verdicts)} verdicts reached"
    if findings:
        code, reason = console.FINDINGS, "; ".join(_short(one) for one in findings)
    elif len(records) < needed:
        code = console.INCONCLUSIVE
        reason = f"too few steps: {len(records)}, the baseline needs {needed}"
    elif not reached:
        code, reason = console.INCONCLUSIVE, _lacking(replayed.verdicts)
    else:
        code, reason = console.CLEAN, f"{len(records)} steps, {judged}"
    return Checked(
        path=str(run.path),
        code=code,
        reason=reason,
        run=run.header.run,
        steps=len(records),
        findings=findings,
        verdicts=replayed.verdicts,
        alerts=replayed.alerts,
        problems=tuple(problems),
    )


def findings_of(replayed: Replay, fail_on: Level) -> tuple[Finding, ...]:
    """What counts: alerts of the whole history, and the state of the last step."""
    transitions: dict[str, list[Alert]] = {}
    for alert in replayed.alerts:
        transitions.setdefault(alert.id, []).append(alert)
    findings = [_raised(history) for history in transitions.values()]
    still_open = {(one.detector, one.role) for one in findings if one.state == "open"}
    findings += [
        _standing(verdict)
        for verdict in replayed.verdicts
        if verdict.state in ("watch", "drift")
        and (verdict.detector, verdict.role) not in still_open
    ]
    return tuple(one for one in findings if _RANK[one.level] >= _RANK[fail_on])


def _raised(history: list[Alert]) -> Finding:
    # The closing transition may carry a milder level; what counts is how bad it got.
    raised = [one for one in history if one.state != "closed"] or history
    peak = max(raised, key=lambda one: _RANK[one.level])
    return Finding(
        role=peak.role,
        detector=peak.detector,
        finding=peak.finding,
        level=peak.level,
        since=peak.onset,
        state="closed" if history[-1].state == "closed" else "open",
        text=peak.title,
        id=peak.id,
    )


def _standing(verdict: Verdict) -> Finding:
    return Finding(
        role=verdict.role,
        detector=verdict.detector,
        finding=verdict.finding or verdict.detector,
        level="ERROR" if verdict.state == "drift" else "WARN",
        since=verdict.onset,
        state="open",
        text=verdict.reason,
    )


def _silent(step: int, quiet: float) -> Finding:
    """The finding that the heartbeat inside a run raises, seen from outside."""
    return Finding(
        role="*",
        detector="heartbeat",
        finding="silent",
        level="WARN",
        since=step,
        state="open",
        text=f"nothing was recorded for {quiet:.0f} s after step {step}: the run may have crashed",
    )


def _watched_with(header: RunHeader) -> tuple[Config, list[str]]:
    try:
        return from_mapping(header.config), []
    except ConfigError as error:
        return Config(), [f"run.json: judged by the default configuration, {error}"]


def _lacking(verdicts: Sequence[Verdict]) -> str:
    needs = sorted({need for one in verdicts for need in one.needs})
    return "no detector reached a verdict" + (f", needs {', '.join(needs)}" if needs else "")


def _short(finding: Finding) -> str:
    since = "" if finding.since is None else f" since step {finding.since}"
    closed = ", closed by now" if finding.state == "closed" else ""
    return f"{finding.role} {finding.finding}{since}{closed}"


def _print(checked: Sequence[Checked]) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console.console()
    colours = {console.CLEAN: "green", console.FINDINGS: "red", console.INCONCLUSIVE: "yellow"}
    for one in checked:
        for problem in one.problems:
            console.say(f"{one.path}: {problem}")
        if one.failed is not None:
            console.say(one.failed.message)
            continue
        # The one line that matters is never folded: a person may grep for it.
        line = Text(f"{printable(one.path)}: ")
        line.append(console.OUTCOMES[one.code], style=colours[one.code])
        line.append(f": {printable(one.reason, 1200)}")
        out.print(line, soft_wrap=True)
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for verdict in one.verdicts:
            why = verdict.reason or ("needs " + ", ".join(verdict.needs) if verdict.needs else "")
            cells = (verdict.state, verdict.role, verdict.detector, why)
            table.add_row("", *(Text(printable(cell)) for cell in cells))
        if one.verdicts:
            console.print_table(table)


def _document(checked: Sequence[Checked], code: int) -> dict[str, Any]:
    failed = next((one.failed for one in checked if one.failed is not None), None)
    document: dict[str, Any] = {} if failed is None else {"error": failed.plain()}
    counts = {
        word: sum(console.OUTCOMES[one.code] == word for one in checked)
        for word in console.OUTCOMES.values()
    }
    return document | {
        "schema": "roledrift.check/1",
        "code": code,
        "counts": counts,
        "runs": [_plain(one) for one in checked],
    }


def _plain(one: Checked) -> dict[str, Any]:
    return {
        "path": one.path,
        "run": one.run,
        "steps": one.steps,
        "outcome": console.OUTCOMES[one.code],
        "code": one.code,
        "reason": one.reason,
        "findings": [asdict(finding) for finding in one.findings],
        "verdicts": [plain(verdict) for verdict in one.verdicts],
        "alerts": [plain(alert) for alert in one.alerts],
        "problems": list(one.problems),
        "error": None if one.failed is None else one.failed.plain(),
    }
