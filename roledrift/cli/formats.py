"""The outcome of ``roledrift check`` as text, Markdown, GitHub annotations or JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from roledrift.cli import console
from roledrift.detect.conclusion import OUTCOMES
from roledrift.notify.console import printable
from roledrift.report.statuses import STATUSES, Status, incident_status, status_of, still_open

if TYPE_CHECKING:
    from roledrift.cli.check import Checked
    from roledrift.judgement import Verdict

_PROBLEMS = 5
_WATCH = STATUSES.index("watch")


def text(checked: Sequence[Checked], *, everything: bool = False) -> None:
    """Print one line per run with its verdicts below, worst first; of several runs the bad ones."""
    from rich.text import Text

    out = console.console()
    for run in checked:
        for problem in run.problems[:_PROBLEMS]:
            console.say(f"{run.path}: {problem}")
        if len(run.problems) > _PROBLEMS:
            console.say(f"{run.path}: and {len(run.problems) - _PROBLEMS} more like these")
        if run.failed is not None:
            console.say(run.failed.message)
            continue
        # The lines that matter are never folded: a person may grep for them.
        line = Text(f"{printable(run.path)}: ")
        line.append(run.outcome, style=console.COLOURS.get(run.outcome, ""))
        line.append(f": {printable(run.sentence, 1200)}")
        out.print(line, soft_wrap=True)
        for incident in run.incidents[1:]:
            more = f"  also {incident_status(incident)}: {incident.sentence}"
            out.print(Text(printable(more, 1200)), soft_wrap=True)
        if run.steps:
            _verdicts(run, alone=everything or len(checked) == 1, everything=everything)
    if len(checked) > 1:
        counts = Counter(str(run.outcome) for run in checked)
        words = ", ".join(f"{counts[word]} {word}" for word in (*OUTCOMES, "unreadable"))
        console.say(f"{len(checked)} runs: {words}" + ("" if everything else " (--all for more)"))


def _statuses(run: Checked) -> list[tuple[Status, Verdict]]:
    """Verdicts with their states, the worst first."""
    alerts = still_open(run.alerts)
    states = [(status_of(verdict, alerts), verdict) for verdict in run.verdicts]
    return sorted(states, key=lambda pair: STATUSES.index(pair[0]), reverse=True)


def _verdicts(run: Checked, *, alone: bool, everything: bool) -> None:
    rows = [
        ("", status, console.role(verdict.role), verdict.finding or verdict.detector, _why(verdict))
        for status, verdict in _statuses(run)
        if (alone and (everything or verdict.applies)) or STATUSES.index(status) >= _WATCH
    ]
    if rows:
        console.print_rows(rows)
    if not alone:
        return
    aside = _aside(run)
    if aside and not everything:
        _more(f"{aside} (--all lists them).")
    if run.costs is not None:
        _more(run.costs.sentence)
    for finding in (
        {finding.finding: finding for finding in run.findings}.values() if everything else ()
    ):
        if finding.sources:
            _more(f"{finding.finding} rests on {'; '.join(finding.sources)}.")


def _more(sentence: str) -> None:
    from rich.text import Text

    console.console().print(Text(f"  {printable(sentence, 1200)}"), soft_wrap=True)


def _aside(run: Checked) -> str:
    """How many verdicts do not apply, without a full stop; empty if all do."""
    aside = sum(not verdict.applies for verdict in run.verdicts)
    if aside < 2:
        return "1 more verdict does not apply" if aside else ""
    return f"{aside} more verdicts do not apply"


def _why(verdict: Verdict) -> str:
    return verdict.reason or ("needs " + ", ".join(verdict.needs) if verdict.needs else "")


def markdown(checked: Sequence[Checked]) -> str:
    """Print a table of runs, and a table of verdicts per run."""
    lines = ["| run | outcome | why |", "| --- | --- | --- |"]
    for run in checked:
        cells = (run.path, run.outcome, run.sentence)
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    for run in checked:
        if run.verdicts:
            lines += ["", f"**{_cell(run.run or run.path)}**", ""]
            lines += ["| role | finding | state | why |", "| --- | --- | --- | --- |"]
            for status, verdict in _statuses(run):
                if not verdict.applies:
                    continue
                name = verdict.finding or verdict.detector
                cells4 = (verdict.role, name, status, _why(verdict))
                lines.append("| " + " | ".join(_cell(cell) for cell in cells4) + " |")
            notes = (_aside(run) and f"{_aside(run)}.", run.costs and run.costs.sentence)
            lines += [line for note in notes if note for line in ("", _cell(note))]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    safe = printable(text, 1200).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{mark}" if mark in "\\`*_[]|#~!" else mark for mark in safe)


def github(checked: Sequence[Checked]) -> str:
    """Print workflow commands, one per incident: GitHub shows them beside the job."""
    lines = []
    for run in checked:
        if run.code == console.FAILED:
            lines.append(_command("error", "could not check", f"{run.path}: {run.sentence}"))
        elif run.code == console.INCONCLUSIVE:
            lines.append(_command("warning", "no verdict", f"{run.path}: {run.sentence}"))
        for incident in run.incidents:
            state = incident_status(incident)
            level = {"suspicious": "warning", "closed": "notice"}.get(state, "error")
            title = f"{state}: {console.role(incident.role)} {incident.finding}"
            lines.append(_command(level, title, f"{run.path}: {incident.sentence}"))
        for finding in run.findings:
            if not finding.id:
                lines.append(_command("warning", finding.finding, f"{run.path}: {finding.text}"))
    return "".join(line + "\n" for line in lines)


def _command(level: str, title: str, text: str) -> str:
    def safe(part: str) -> str:
        return printable(part, 1200).replace("%", "%25")

    named = safe(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={named}::{safe(text)}"


def junit(checked: Sequence[Checked]) -> str:
    """Print a test suite per run and a test per verdict; no verdict is skipped, never passed."""
    suites = []
    for run in checked:
        cases = [_case(run, index) for index in range(len(run.verdicts))]
        if run.code in (console.FAILED, console.INCONCLUSIVE):
            kind = "error" if run.code == console.FAILED else "skipped"
            cases.append(_tag("testcase", {"name": "run", "classname": run.path},
                              _tag(kind, {"message": run.sentence})))  # fmt: skip
        suites.append(_tag("testsuite", {"name": run.path, "tests": str(len(cases))},
                           "".join(cases)))  # fmt: skip
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return head + _tag("testsuites", {}, "".join(suites)) + "\n"


def _case(run: Checked, index: int) -> str:
    """A test per verdict; that of a cause fails with the sentence of its incident."""
    verdict, body = run.verdicts[index], ""
    place = (verdict.detector, verdict.role)
    finding = next((f for f in run.findings if (f.detector, f.role) == place), None)
    if finding is not None:
        causes = {(i.role, i.finding, i.onset): i.sentence for i in run.incidents}
        message = causes.get((finding.role, finding.finding, finding.since), finding.text)
        kind = f"{finding.severity}: {finding.finding}"
        body = _tag("failure", {"message": message, "type": kind})
    elif verdict.state == "no verdict":
        body = _tag("skipped", {"message": verdict.reason or ", ".join(verdict.needs)})
    name = {"name": f"{verdict.detector} {verdict.role}", "classname": run.run or run.path}
    return _tag("testcase", name, body)


def _tag(name: str, attributes: Mapping[str, str], inside: str = "") -> str:
    # It loads urllib and ssl, which no other format needs.
    from xml.sax.saxutils import escape, quoteattr

    given = "".join(
        f" {key}={quoteattr(printable(text, 1200))}" for key, text in attributes.items()
    )
    return f"<{name}{given}>{inside}</{name}>" if inside else f"<{escape(name)}{given}/>"


FORMATS: Mapping[str, Callable[[Sequence[Checked]], str]] = {
    "markdown": markdown,
    "github": github,
    "junit": junit,
}
"""Name of a format to its renderer; ``text`` and ``json`` are the command's own."""
