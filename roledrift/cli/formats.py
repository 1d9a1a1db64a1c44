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
    for one in checked:
        for problem in one.problems[:_PROBLEMS]:
            console.say(f"{one.path}: {problem}")
        if len(one.problems) > _PROBLEMS:
            console.say(f"{one.path}: and {len(one.problems) - _PROBLEMS} more like these")
        if one.failed is not None:
            console.say(one.failed.message)
            continue
        # The lines that matter are never folded: a person may grep for them.
        line = Text(f"{printable(one.path)}: ")
        line.append(one.outcome, style=console.COLOURS.get(one.outcome, ""))
        line.append(f": {printable(one.sentence, 1200)}")
        out.print(line, soft_wrap=True)
        for incident in one.incidents[1:]:
            more = f"  also {incident_status(incident)}: {incident.sentence}"
            out.print(Text(printable(more, 1200)), soft_wrap=True)
        if one.steps:
            _verdicts(one, whole=everything or len(checked) == 1, everything=everything)
    if len(checked) > 1:
        counts = Counter(str(one.outcome) for one in checked)
        words = ", ".join(f"{counts[word]} {word}" for word in (*OUTCOMES, "unreadable"))
        console.say(f"{len(checked)} runs: {words}" + ("" if everything else " (--all for more)"))


def _statuses(one: Checked) -> list[tuple[Status, Verdict]]:
    """Verdicts with their states, the worst first."""
    alerts = still_open(one.alerts)
    states = [(status_of(verdict, alerts), verdict) for verdict in one.verdicts]
    return sorted(states, key=lambda pair: STATUSES.index(pair[0]), reverse=True)


def _verdicts(one: Checked, *, whole: bool, everything: bool) -> None:
    rows = [
        ("", status, console.role(verdict.role), verdict.finding or verdict.detector, _why(verdict))
        for status, verdict in _statuses(one)
        if (whole and (everything or verdict.applies)) or STATUSES.index(status) >= _WATCH
    ]
    if rows:
        console.print_rows(rows)
    if not whole:
        return
    aside = _aside(one)
    if aside and not everything:
        _more(f"{aside} (--all lists them).")
    if one.costs is not None:
        _more(one.costs.sentence)
    for finding in {one.finding: one for one in one.findings}.values() if everything else ():
        if finding.sources:
            _more(f"{finding.finding} rests on {'; '.join(finding.sources)}.")


def _more(sentence: str) -> None:
    from rich.text import Text

    console.console().print(Text(f"  {printable(sentence, 1200)}"), soft_wrap=True)


def _aside(one: Checked) -> str:
    """How many verdicts do not apply, without a full stop; empty if all do."""
    aside = sum(not verdict.applies for verdict in one.verdicts)
    if aside < 2:
        return "1 more verdict does not apply" if aside else ""
    return f"{aside} more verdicts do not apply"


def _why(verdict: Verdict) -> str:
    return verdict.reason or ("needs " + ", ".join(verdict.needs) if verdict.needs else "")


def markdown(checked: Sequence[Checked]) -> str:
    """Print a table of runs, and a table of verdicts per run."""
    lines = ["| run | outcome | why |", "| --- | --- | --- |"]
    for one in checked:
        cells = (one.path, one.outcome, one.sentence)
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    for one in checked:
        if one.verdicts:
            lines += ["", f"**{_cell(one.run or one.path)}**", ""]
            lines += ["| role | finding | state | why |", "| --- | --- | --- | --- |"]
            for status, verdict in _statuses(one):
                if not verdict.applies:
                    continue
                name = verdict.finding or verdict.detector
                cells4 = (verdict.role, name, status, _why(verdict))
                lines.append("| " + " | ".join(_cell(cell) for cell in cells4) + " |")
            notes = (_aside(one) and f"{_aside(one)}.", one.costs and one.costs.sentence)
            lines += [line for note in notes if note for line in ("", _cell(note))]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    safe = printable(text, 1200).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{mark}" if mark in "\\`*_[]|#~!" else mark for mark in safe)


def github(checked: Sequence[Checked]) -> str:
    """Print workflow commands, one per incident: GitHub shows them beside the job."""
    lines = []
    for one in checked:
        if one.code == console.FAILED:
            lines.append(_command("error", "could not check", f"{one.path}: {one.sentence}"))
        elif one.code == console.INCONCLUSIVE:
            lines.append(_command("warning", "no verdict", f"{one.path}: {one.sentence}"))
        for incident in one.incidents:
            state = incident_status(incident)
            level = {"suspicious": "warning", "closed": "notice"}.get(state, "error")
            title = f"{state}: {console.role(incident.role)} {incident.finding}"
            lines.append(_command(level, title, f"{one.path}: {incident.sentence}"))
        for finding in one.findings:
            if not finding.id:
                lines.append(_command("warning", finding.finding, f"{one.path}: {finding.text}"))
    return "".join(line + "\n" for line in lines)


def _command(level: str, title: str, text: str) -> str:
    def safe(part: str) -> str:
        return printable(part, 1200).replace("%", "%25")

    named = safe(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={named}::{safe(text)}"


def junit(checked: Sequence[Checked]) -> str:
    """Print a test suite per run and a test per verdict; no verdict is skipped, never passed."""
    suites = []
    for one in checked:
        cases = [_case(one, index) for index in range(len(one.verdicts))]
        if one.code in (console.FAILED, console.INCONCLUSIVE):
            kind = "error" if one.code == console.FAILED else "skipped"
            cases.append(_tag("testcase", {"name": "run", "classname": one.path},
                              _tag(kind, {"message": one.sentence})))  # fmt: skip
        suites.append(_tag("testsuite", {"name": one.path, "tests": str(len(cases))},
                           "".join(cases)))  # fmt: skip
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return head + _tag("testsuites", {}, "".join(suites)) + "\n"


def _case(one: Checked, index: int) -> str:
    """A test per verdict; that of a cause fails with the sentence of its incident."""
    verdict, body = one.verdicts[index], ""
    place = (verdict.detector, verdict.role)
    finding = next((f for f in one.findings if (f.detector, f.role) == place), None)
    if finding is not None:
        causes = {(i.role, i.finding, i.onset): i.sentence for i in one.incidents}
        message = causes.get((finding.role, finding.finding, finding.since), finding.text)
        kind = f"{finding.severity}: {finding.finding}"
        body = _tag("failure", {"message": message, "type": kind})
    elif verdict.state == "no verdict":
        body = _tag("skipped", {"message": verdict.reason or ", ".join(verdict.needs)})
    name = {"name": f"{verdict.detector} {verdict.role}", "classname": one.run or one.path}
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
