"""``roledrift check``: the detectors, replayed over recorded runs."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from roledrift.cli import console
from roledrift.cli.foreign import opened
from roledrift.cli.formats import FORMATS, text
from roledrift.codec import plain
from roledrift.config import Config, from_mapping, load
from roledrift.detect import DETECTORS
from roledrift.detect.panel import Replay, replay
from roledrift.errors import ConfigError, RoleDriftError
from roledrift.extensions import extensions
from roledrift.records import Alert, Level, RunHeader, StepRecord, Verdict
from roledrift.store.reader import Run, find_runs, open_run, reference_steps
from roledrift.store.silence import silent_for

_HEARTBEAT = "heartbeat"
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


@dataclass(frozen=True, slots=True)
class Only:
    """What of the runs is judged and shown.

    Attributes:
        detectors: Names; findings and verdicts of others are left out. Empty for all.
        steps: ``A:B``, both included, each may be left out: only these steps are replayed, and the
            baseline is the first of them. Empty for all.
        everything: Print every verdict also of several runs.
    """

    detectors: tuple[str, ...] = ()
    steps: str = ""
    everything: bool = False

    def span(self) -> tuple[int, int] | None:
        """First and last step; None for all.

        Raises:
            ConfigError: If ``steps`` is no range.
        """
        if not self.steps:
            return None
        match = re.fullmatch(r"(-?\d+)?:(-?\d+)?", self.steps.strip())
        if match is None or not any(match.groups()):
            raise ConfigError(f"--step-range {self.steps!r}: give A:B, A: or :B, such as 100:200")
        first = int(match[1]) if match[1] else -sys.maxsize
        last = int(match[2]) if match[2] else sys.maxsize
        if first > last:
            raise ConfigError(f"--step-range {self.steps!r}: {first} is after {last}; swap them")
        return first, last

    def known(self) -> None:
        """Look the detectors up.

        Raises:
            ConfigError: If there is none of that name.
        """
        names = [*DETECTORS, *(one.name for one in extensions("detectors"))]
        for name in self.detectors:
            if name not in names:
                near = get_close_matches(name, names, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(names)}."
                raise ConfigError(f"--detector {name!r}: no such detector. {hint}")


def check(
    paths: Sequence[str],
    config: Path | None,
    *,
    fail_on: Level = "WARN",
    as_json: bool = False,
    style: str = "text",
    only: Only | None = None,
) -> int:
    """Check runs and print the outcome.

    Args:
        paths: Runs or folders of runs.
        config: TOML file to judge by; None judges each run by what it was watched with.
        fail_on: Level from which a finding counts.
        as_json: Print one JSON document instead of text.
        style: ``text``, ``json``, or one of :data:`roledrift.cli.formats.FORMATS`.
        only: What is judged and shown; None is everything.

    Returns:
        The exit code: that of the worst run, in the order 2 > 1 > 3 > 0.
    """
    only = only or Only()
    as_json = as_json or style == "json"
    try:
        only.span()
        only.known()
    except ConfigError as error:
        failed = console.failure("usage", str(error), "roledrift check --help")
        return console.fail(failed, as_json=as_json)
    try:
        settings = None if config is None else load(config)
    except ConfigError as error:
        return console.fail(console.failure_of(error), as_json=as_json)
    with opened(paths) as places:
        checked = [
            replace(one, path=shown) if place != shown else one
            for shown, place in places
            for one in _below(place, settings, fail_on, only)
        ]
    code = console.worst(one.code for one in checked)
    if as_json:
        console.write_json(_document(checked, code))
    elif style in FORMATS:
        sys.stdout.write(FORMATS[style](checked))
    else:
        text(checked, everything=only.everything)
    return code


def _below(path: str, config: Config | None, fail_on: Level, only: Only) -> Iterable[Checked]:
    try:
        found = find_runs(path)
    except RoleDriftError as error:
        yield _unreadable(path, error)
        return
    if not found:
        yield Checked(path, console.INCONCLUSIVE, "no run found here or below")
    for one in found:
        try:
            yield check_run(open_run(one), config, fail_on=fail_on, only=only)
        except RoleDriftError as error:
            yield _unreadable(str(one), error)


def _unreadable(path: str, error: RoleDriftError) -> Checked:
    failed = console.failure_of(error, path)
    return Checked(path, console.FAILED, failed.message, failed=failed)


def check_run(
    run: Run,
    config: Config | None = None,
    *,
    fail_on: Level = "WARN",
    now: float | None = None,
    only: Only | None = None,
) -> Checked:
    """Judge one run.

    Args:
        run: The run.
        config: What to judge by; None is what the run was watched with.
        fail_on: Level from which a finding counts.
        now: Seconds since 1970, to tell an open run from a silent one; None is the present.
        only: What is judged; silence is no detector's, and is looked for only without any.
    """
    only = only or Only()
    problems = list(run.problems)
    if config is None:
        config, trouble = _watched_with(run.header)
        problems += trouble
    records = run.steps()
    last = records[-1].step if records else 0
    first, final = only.span() or (-sys.maxsize, sys.maxsize)
    records = [one for one in records if first <= one.step <= final]
    replayed = _replayed(run.header, records, config, only.detectors)
    problems += [f"detector {name} failed: {said}" for name, said in replayed.faults.items()]
    findings = findings_of(replayed, fail_on)
    if fail_on != "ERROR" and not only.detectors and final >= last:
        quiet = silent_for(records, state=run.state, now=time.time() if now is None else now)
        findings += () if quiet is None else (_silent(records[-1].step, quiet),)
    code, reason = _outcome(findings, replayed.verdicts, len(records), config)
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


def _replayed(
    header: RunHeader, records: list[StepRecord], config: Config, detectors: Sequence[str]
) -> Replay:
    """The replay, without what other detectors than these said."""
    workflow = header.workflow
    reference = reference_steps(config.baseline.reference, workflow)
    whole = replay(records, workflow, config, reference=reference, host=header.host)
    if not detectors:
        return whole
    return replace(
        whole,
        verdicts=tuple(one for one in whole.verdicts if one.detector in detectors),
        alerts=tuple(one for one in whole.alerts if one.detector in detectors),
        faults={name: said for name, said in whole.faults.items() if name in detectors},
    )


def _outcome(
    findings: Sequence[Finding], verdicts: Sequence[Verdict], steps: int, config: Config
) -> tuple[int, str]:
    needed = config.baseline.skip + config.baseline.window + 1
    reached = [one for one in verdicts if one.state != "no verdict"]
    if findings:
        return console.FINDINGS, "; ".join(_short(one) for one in findings)
    if steps < needed:
        return console.INCONCLUSIVE, f"too few steps: {steps}, the baseline needs {needed}"
    if not reached:
        return console.INCONCLUSIVE, _lacking(verdicts)
    possible = sum(one.applies for one in verdicts)
    return console.CLEAN, f"{steps} steps, {len(reached)} of {possible} verdicts reached"


def findings_of(replayed: Replay, fail_on: Level) -> tuple[Finding, ...]:
    """What counts: alerts of the whole history, and drift that stands at the last step.

    What is merely watched at the last step is no finding: of 55 recorded runs in which nothing is
    wrong 11 end so without any alert, and the stated false-alarm rates are those of alerts.
    """
    transitions: dict[str, list[Alert]] = {}
    for alert in replayed.alerts:
        transitions.setdefault(alert.id, []).append(alert)
    findings = [_raised(history) for history in transitions.values()]
    still_open = {(one.detector, one.role) for one in findings if one.state == "open"}
    findings += [
        _standing(verdict)
        for verdict in replayed.verdicts
        if verdict.state == "drift" and (verdict.detector, verdict.role) not in still_open
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
        level="ERROR" if verdict.finding in ("", verdict.detector) else "WARN",
        since=verdict.onset,
        state="open",
        text=verdict.reason,
    )


def _silent(step: int, quiet: float) -> Finding:
    """The finding that the heartbeat inside a run raises, seen from outside."""
    return Finding(
        role="*",
        detector=_HEARTBEAT,
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
    if finding.detector == _HEARTBEAT:
        return f"silent since step {finding.since} (crashed?)"
    since = "" if finding.since is None else f" since step {finding.since}"
    closed = ", closed by now" if finding.state == "closed" else ""
    return f"{console.role(finding.role)} {finding.finding}{since}{closed}"


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
