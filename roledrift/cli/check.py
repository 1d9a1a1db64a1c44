"""``roledrift check``: replay the detectors over recorded runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from roledrift.cli import console
from roledrift.cli.findings import COUNTS, CheckedFinding, check_names, findings_of, silence
from roledrift.cli.foreign import opened
from roledrift.cli.formats import FORMATS, text
from roledrift.cli.options import Judged
from roledrift.codec import plain
from roledrift.config import Config, watched_with
from roledrift.costs import Costs, with_given
from roledrift.costs import costs as costs_of
from roledrift.detect.conclusion import OUTCOMES, Conclusion, Outcome, conclude
from roledrift.detect.settings import load
from roledrift.detect.suite import replay_run
from roledrift.errors import ConfigError, RoleDriftError
from roledrift.judgement import Alert, Incident, Verdict
from roledrift.report.statuses import urgency
from roledrift.store.reader import StoredRun, find_runs, open_run, reference_steps
from roledrift.store.silence import silent_for


@dataclass(frozen=True, slots=True)
class Checked:
    """Outcome for one path."""

    path: str
    code: int
    outcome: Outcome | Literal["unreadable"]
    sentence: str
    run: str = ""
    steps: int = 0
    incidents: tuple[Incident, ...] = ()
    findings: tuple[CheckedFinding, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    alerts: tuple[Alert, ...] = ()
    problems: tuple[str, ...] = ()
    costs: Costs | None = None
    failed: console.Failure | None = None


def check(paths: Sequence[str], how: Judged) -> int:
    """Check runs and print the outcome, the worst first.

    Returns:
        The exit code: that of the worst run, in the order 2 > 1 > 3 > 0.
    """
    try:
        check_names(how.findings or ())
    except ConfigError as error:
        failed = console.failure("usage", str(error), "roledrift check --help")
        return console.fail(failed, as_json=how.as_json)
    try:
        config = None if how.config is None else load(how.config)
    except ConfigError as error:
        return console.fail(console.failure_of(error), as_json=how.as_json)
    with opened(paths) as places:
        checked = [
            replace(run, path=run.path.replace(place, shown, 1)) if place != shown else run
            for shown, place in places
            for run in _below(place, config, how)
        ]
    checked.sort(key=_urgency)
    code = console.worst(run.code for run in checked)
    if how.as_json:
        console.write_json(_document(checked, code))
    elif how.style.value in FORMATS:
        sys.stdout.write(FORMATS[how.style.value](checked))
    else:
        text(checked, everything=how.everything)
    return code


def _urgency(checked: Checked) -> tuple[int, bool, float]:
    return urgency(checked.outcome, next(iter(checked.incidents), None))


def _below(path: str, config: Config | None, how: Judged) -> Iterable[Checked]:
    try:
        runs = find_runs(path)
    except RoleDriftError as error:
        yield _unreadable(path, error)
        return
    if not runs:
        yield Checked(path, console.INCONCLUSIVE, "no verdict", "no run found here or below")
    for run in runs:
        try:
            yield check_run(open_run(run), config, how)
        except RoleDriftError as error:
            yield _unreadable(str(run), error)


def _unreadable(path: str, error: RoleDriftError) -> Checked:
    failed = console.failure_of(error, path)
    return Checked(path, console.FAILED, "unreadable", failed.message, failed=failed)


def check_run(
    run: StoredRun,
    config: Config | None = None,
    how: Judged | None = None,
    *,
    now: float | None = None,
) -> Checked:
    """Judge one run."""
    how = how or Judged()
    problems = list(run.problems)
    if config is None:
        config, trouble = watched_with(run.header.config)
        problems += [trouble] if trouble else []
    records = run.steps()
    if how.findings:
        config = replace(config, findings=tuple(how.findings))
    reference = reference_steps(config.baseline.reference, run.header.workflow)
    replayed = replay_run(run.header, records, config, reference=reference)
    problems += [f"detector {name} failed: {text}" for name, text in replayed.faults.items()]
    findings = findings_of(replayed)
    conclusion = conclude(replayed.verdicts, replayed.incidents, len(records))
    if not how.findings:
        quiet = silent_for(records, state=run.state, now=time.time() if now is None else now)
        if quiet is not None:
            findings += (silence(records[-1].step, quiet),)
            conclusion = _not_clean(conclusion, findings[-1].text)
    return Checked(
        path=str(run.path),
        code=exit_code(conclusion.outcome, how.fail_on),
        outcome=conclusion.outcome,
        sentence=conclusion.sentence,
        run=run.header.run,
        steps=len(records),
        incidents=replayed.incidents,
        findings=findings,
        verdicts=replayed.verdicts,
        alerts=replayed.alerts,
        problems=tuple(problems),
        costs=costs_of(records, run.header, with_given(config.costs, how.costs)),
    )


def exit_code(outcome: Outcome, fail_on: str = "input") -> int:
    """Return 0 if nothing counts, 1 for an outcome that ``fail_on`` counts, 3 without a verdict."""
    if outcome == "no verdict":
        return console.INCONCLUSIVE
    return console.FINDINGS if outcome in COUNTS[fail_on] else console.CLEAN


def _not_clean(conclusion: Conclusion, silent: str) -> Conclusion:
    """A silent run is not clean; what was found in it is told first."""
    if conclusion.outcome != "clean":
        return conclusion
    return replace(conclusion, outcome="suspicious", sentence=silent)


def _document(checked: Sequence[Checked], code: int) -> dict[str, Any]:
    failed = next((run.failed for run in checked if run.failed is not None), None)
    document: dict[str, Any] = {} if failed is None else {"error": failed.plain()}
    words = (*OUTCOMES, "unreadable")
    return document | {
        "schema": "roledrift.check/2",
        "code": code,
        "counts": {word: sum(run.outcome == word for run in checked) for word in words},
        "runs": [_plain(run) for run in checked],
    }


def _plain(run: Checked) -> dict[str, Any]:
    return {
        "path": run.path,
        "run": run.run,
        "steps": run.steps,
        "outcome": run.outcome,
        "code": run.code,
        "sentence": run.sentence,
        "incidents": [plain(incident) for incident in run.incidents],
        "findings": [asdict(finding) for finding in run.findings],
        "verdicts": [plain(verdict) for verdict in run.verdicts],
        "alerts": [plain(alert) for alert in run.alerts],
        "problems": list(run.problems),
        "costs": None if run.costs is None else asdict(run.costs),
        "error": None if run.failed is None else run.failed.plain(),
    }
