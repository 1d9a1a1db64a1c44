"""The outcome of ``roledrift check`` as text, Markdown, GitHub annotations or JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from roledrift.cli import console
from roledrift.notify.console import printable

if TYPE_CHECKING:
    from roledrift.cli.check import Checked
    from roledrift.records import Verdict

_COLOURS = {console.CLEAN: "green", console.FINDINGS: "red", console.INCONCLUSIVE: "yellow"}
_ORDER = ("drift", "watch", "ok", "no verdict")
_PROBLEMS = 5


def text(checked: Sequence[Checked], *, everything: bool = False) -> None:
    """One line per run and below it its verdicts, the worst first; of several runs the bad ones."""
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
        # The one line that matters is never folded: a person may grep for it.
        line = Text(f"{printable(one.path)}: ")
        line.append(console.OUTCOMES[one.code], style=_COLOURS[one.code])
        line.append(f": {printable(one.reason, 1200)}")
        out.print(line, soft_wrap=True)
        if one.steps:
            whole = everything or len(checked) == 1
            _verdicts([v for v in one.verdicts if whole or v.state in _ORDER[:2]])
    if len(checked) > 1:
        counts = Counter(console.OUTCOMES[one.code] for one in checked)
        words = ", ".join(f"{word} {counts[word]}" for word in console.OUTCOMES.values())
        console.say(f"{len(checked)} runs: {words}" + ("" if everything else " (--all for more)"))


def _verdicts(verdicts: Sequence[Verdict]) -> None:
    if not verdicts:
        return
    rows = []
    for one in sorted(verdicts, key=lambda one: _ORDER.index(one.state)):
        why = one.reason or ("needs " + ", ".join(one.needs) if one.needs else "")
        rows.append(("", one.state, console.role(one.role), one.detector, why))
    console.print_rows(rows)


def markdown(checked: Sequence[Checked]) -> str:
    """A table of runs, and one of verdicts per run."""
    lines = ["| run | outcome | why |", "| --- | --- | --- |"]
    for one in checked:
        cells = (one.path, console.OUTCOMES[one.code], one.reason)
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    for one in checked:
        if one.verdicts:
            lines += ["", f"**{_cell(one.run or one.path)}**", ""]
            lines += ["| role | detector | state | why |", "| --- | --- | --- | --- |"]
            for verdict in one.verdicts:
                why = verdict.reason or ", ".join(verdict.needs)
                cells4 = (verdict.role, verdict.detector, verdict.state, why)
                lines.append("| " + " | ".join(_cell(cell) for cell in cells4) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    safe = printable(text, 600).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{mark}" if mark in "\\`*_[]|#~!" else mark for mark in safe)


def github(checked: Sequence[Checked]) -> str:
    """Workflow commands: GitHub shows them beside the job."""
    lines = []
    for one in checked:
        if one.code == console.FAILED:
            lines.append(_command("error", "could not check", f"{one.path}: {one.reason}"))
        elif one.code == console.INCONCLUSIVE:
            lines.append(_command("warning", "inconclusive", f"{one.path}: {one.reason}"))
        for finding in one.findings:
            level = "error" if finding.level == "ERROR" else "warning"
            since = "" if finding.since is None else f" since step {finding.since}"
            text = f"{one.path}: {finding.role} {finding.finding}{since}: {finding.text}"
            lines.append(_command(level, f"{finding.role}: {finding.finding}", text))
    return "".join(line + "\n" for line in lines)


def _command(level: str, title: str, text: str) -> str:
    def safe(part: str) -> str:
        return printable(part, 900).replace("%", "%25")

    named = safe(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={named}::{safe(text)}"


def junit(checked: Sequence[Checked]) -> str:
    """A test suite per run and a test per verdict; no verdict is skipped, never passed."""
    suites = []
    for one in checked:
        cases = [_case(one, index) for index in range(len(one.verdicts))]
        if one.code in (console.FAILED, console.INCONCLUSIVE):
            kind = "error" if one.code == console.FAILED else "skipped"
            cases.append(_tag("testcase", {"name": "run", "classname": one.path},
                              _tag(kind, {"message": one.reason})))  # fmt: skip
        suites.append(_tag("testsuite", {"name": one.path, "tests": str(len(cases))},
                           "".join(cases)))  # fmt: skip
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return head + _tag("testsuites", {}, "".join(suites)) + "\n"


def _case(one: Checked, index: int) -> str:
    verdict = one.verdicts[index]
    body = ""
    found = [
        finding
        for finding in one.findings
        if (finding.detector, finding.role) == (verdict.detector, verdict.role)
    ]
    if found:
        body = _tag("failure", {"message": found[0].text, "type": found[0].finding})
    elif verdict.state == "no verdict":
        body = _tag("skipped", {"message": verdict.reason or ", ".join(verdict.needs)})
    name = {"name": f"{verdict.detector} {verdict.role}", "classname": one.run or one.path}
    return _tag("testcase", name, body)


def _tag(name: str, attributes: Mapping[str, str], inside: str = "") -> str:
    given = "".join(f" {key}={quoteattr(printable(text, 600))}" for key, text in attributes.items())
    return f"<{name}{given}>{inside}</{name}>" if inside else f"<{escape(name)}{given}/>"


FORMATS: Mapping[str, Callable[[Sequence[Checked]], str]] = {
    "markdown": markdown,
    "github": github,
    "junit": junit,
}
"""Name of a format to its renderer; ``text`` and ``json`` are the command's own."""
