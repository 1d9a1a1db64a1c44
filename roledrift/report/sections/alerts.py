"""Section "Alerts": a table with the cause first, and a card with evidence for each alert."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from roledrift.detect.catalogue import all_cards
from roledrift.judgement import SEVERITIES, Alert
from roledrift.measure.catalogue import charted
from roledrift.notify.message import strength
from roledrift.report.change import change_of
from roledrift.report.curves import line, overlay_panel
from roledrift.report.judged_run import JudgedRun, ReportedFinding
from roledrift.report.model import (
    AlertCard,
    Block,
    Cell,
    Figure,
    Line,
    Mark,
    Note,
    Prose,
    Section,
    Table,
)
from roledrift.report.numbers import cell, count, number, ratio, stepped
from roledrift.report.sections.evidence import evidence_of
from roledrift.report.sections.names import (
    plain_words,
    role_name,
)

CARDS = 12
"""Evidence cards per run; further alerts are in the table only, which says so."""

PLACE = 20


def build(run: JudgedRun) -> Section:
    """Build the section."""
    if not run.findings:
        judged = any(verdict.state != "no verdict" for verdict in run.verdicts)
        text = (
            "No alerts."
            if judged
            else "No alerts, and no detector had enough evidence to raise one."
        )
        return Section("alerts", "Alerts", (Prose(text) if judged else Note(text),), "none")
    blocks: list[Block] = [_overview(run), *_others(run)]
    counted: set[tuple[str, int]] = set()
    for finding in run.findings[:CARDS]:
        # A role that is accused twice from the same step on has the same numbers.
        place = (finding.alert.role, finding.alert.onset)
        blocks.append(_card(run, finding, numbers=place not in counted))
        counted.add(place)
    if len(run.findings) > CARDS:
        blocks.append(Note(f"{len(run.findings) - CARDS} more alerts are in the table only."))
    return Section("alerts", "Alerts", tuple(blocks), _summary(run))


def _summary(run: JudgedRun) -> str:
    """How many of which severity, and how many still stand."""
    times = Counter(finding.state for finding in run.findings)
    counted = ", ".join(
        f"{times[severity]} {severity}" for severity in SEVERITIES if times[severity]
    )
    standing = sum(finding.closed is None for finding in run.findings)
    return f"{counted}; {'all' if standing == len(run.findings) else standing} still open"


def _anchor(run: JudgedRun, finding: ReportedFinding) -> str:
    return f"{run.key}-alert-{finding.alert.id}"


def _overview(run: JudgedRun) -> Table:
    rows = []
    for index, finding in enumerate(run.findings):
        alert = finding.alert
        href = f"#{_anchor(run, finding)}" if index < CARDS else ""
        rows.append(
            (
                count(alert.onset),
                Cell(finding.state, state=finding.state),
                Cell(role_name(alert.role)),
                Cell(alert.finding, href=href),
                Cell(plain_words(alert.title)),
                count(finding.raised),
                Cell("open") if finding.closed is None else count(finding.closed),
            )
        )
    columns = ("since step", "severity", "role", "finding", "what", "reported", "closed")
    return Table(columns, tuple(rows), caption="By incident, its cause first.")


def _others(run: JudgedRun) -> list[Block]:
    """What the headline does not tell: incidents beside the first."""
    others = run.replay.incidents[1:]
    if not others:
        return []
    return [Note("Further incidents:", tuple(incident.sentence for incident in others))]


def _card(run: JudgedRun, finding: ReportedFinding, *, numbers: bool) -> AlertCard:
    alert = finding.alert
    steps = [f"onset at step {alert.onset}", f"raised at step {finding.raised}"]
    if finding.escalated is not None:
        steps.append(f"worse at step {finding.escalated}")
    steps.append("still open" if finding.closed is None else f"closed at step {finding.closed}")
    if alert.stops:
        steps.append("stops the run")
    facts = f"{alert.finding} · {role_name(alert.role)} · {', '.join(steps)} · {alert.id}"
    text = alert.text or strength(alert) or "The detector gave no details."
    blocks: list[Block] = [Prose(plain_words(text))]
    if alert.evidence is not None or alert.chance:
        blocks.append(Prose(f"How sure: {_certainty(alert)}."))
    blocks.append(_statistic(run, finding))
    if numbers:
        blocks.append(_numbers(run, finding))
    known = all_cards().findings.get(alert.finding)
    if known is not None and known.sources:
        blocks.append(Prose(f"Threshold and advice rest on {'; '.join(known.sources)}."))
    title = plain_words(alert.title)
    return AlertCard(_anchor(run, finding), title, finding.state, facts, tuple(blocks))


def _certainty(alert: Alert) -> str:
    evidence = "" if alert.evidence is None else f"evidence {number(alert.evidence)}"
    return " ".join(word for word in (evidence, alert.chance) if word)


def _statistic(run: JudgedRun, finding: ReportedFinding) -> Block:
    alert = finding.alert
    shown = evidence_of(run, alert)
    if not shown.curves:
        return Note("The detector gave no curve of its statistic.")
    marks = [Mark(alert.onset, f"onset {alert.onset}")]
    if finding.raised != alert.onset:
        marks.append(Mark(finding.raised, f"alert {finding.raised}"))
    panel = overlay_panel(run, shown.title, shown.curves, log=shown.log, share=shown.share,
                     marked=marks, limit=_limit(shown.limit))  # fmt: skip
    return Figure(f"{_anchor(run, finding)}-statistic", "", "", (panel,))


def _limit(limit: Mapping[int, float]) -> tuple[Line, ...]:
    if not limit:
        return ()
    return (line(f"threshold {number(limit[max(limit)])}", limit, style="limit"),)


def _numbers(run: JudgedRun, finding: ReportedFinding) -> Block:
    """What else changed for the role, each quantity from its start to its last value."""
    role, onset = finding.alert.role, finding.alert.onset
    before = run.baseline
    if before is None or before[1] >= onset:
        before = (run.span[0], onset - 1)
    since = run.since(finding)
    rows, same = [], []
    for statistic in charted():
        change = change_of(run.curve(role, statistic.name), before, since)
        if change is None:
            continue
        if change.level:
            same.append(statistic.title.lower())
            continue
        rows.append(
            (
                Cell(statistic.heading(run.length_unit)),
                cell(change.start),
                stepped(change.farthest, change.farthest_step),
                stepped(change.last, change.last_step),
                Cell(ratio(change.ratio), change.ratio),
            )
        )
    ended = f"Ended within a tenth of their start: {', '.join(same)}." if same else ""
    if not rows:
        return Note(ended or f"No other statistics of {role_name(role)} were measured.")
    start = f"start (mean of steps {before[0]}–{before[1]})"
    columns = ("quantity", start, "farthest from it", "last", "last / start")
    title = f"{role_name(role)} in numbers"
    return Table(columns, tuple(rows), title[:1].upper() + title[1:], ended)
