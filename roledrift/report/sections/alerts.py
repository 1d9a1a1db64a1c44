"""Alerts: a table, and for each alert a card with its evidence."""

from __future__ import annotations

import math

from roledrift.detect.catalogue import all_cards
from roledrift.judgement import Alert
from roledrift.records import Sample
from roledrift.report.curves import odd_values, panel, role_line, table
from roledrift.report.model import (
    Block,
    Card,
    Cell,
    Figure,
    Line,
    Mark,
    Note,
    Pairs,
    Prose,
    Section,
    Table,
)
from roledrift.report.numbers import average, cell, change, count, number
from roledrift.report.pairings import around, compared
from roledrift.report.passages import Diff
from roledrift.report.sections.names import (
    QUANTITIES,
    plain_words,
    role_name,
    statistic_name,
)
from roledrift.report.sections.verdict import strength
from roledrift.report.view import Finding, View, thinned
from roledrift.sums import EVERYONE

CARDS = 12
"""Evidence cards per run; further alerts are in the table only, which says so."""


def build(view: View) -> Section:
    """The alerts section."""
    if not view.findings:
        judged = any(one.state != "no verdict" for one in view.verdicts)
        text = (
            "No alerts."
            if judged
            else "No alerts, and no detector had enough evidence to raise one."
        )
        return Section("alerts", "Alerts", (Prose(text) if judged else Note(text),))
    blocks: list[Block] = [_overview(view)]
    told: set[tuple[str, int]] = set()
    for one in view.findings[:CARDS]:
        # A role that is accused twice from the same step on has the same numbers and texts.
        twice = (one.alert.role, one.alert.onset) in told
        told.add((one.alert.role, one.alert.onset))
        blocks.append(_card(view, one, twice=twice))
    if len(view.findings) > CARDS:
        blocks.append(Note(f"{len(view.findings) - CARDS} more alerts are in the table only."))
    return Section("alerts", "Alerts", tuple(blocks), len(view.findings))


def _anchor(view: View, finding: Finding) -> str:
    return f"{view.key}-alert-{finding.alert.id}"


def _overview(view: View) -> Table:
    rows = []
    for index, one in enumerate(view.findings):
        alert = one.alert
        href = f"#{_anchor(view, one)}" if index < CARDS else ""
        rows.append(
            (
                Cell(alert.id, href=href),
                Cell(one.state, state=one.state),
                Cell(alert.finding),
                Cell(role_name(alert.role)),
                count(alert.onset),
                count(one.raised),
                Cell("open") if one.closed is None else count(one.closed),
                Cell(statistic_name(alert.statistic) if alert.statistic else "–"),
                cell(alert.value),
                cell(alert.threshold),
                cell(alert.baseline),
            )
        )
    columns = (
        "id",
        "severity",
        "finding",
        "role",
        "onset",
        "raised",
        "closed",
        "statistic",
        "value",
        "threshold",
        "baseline",
    )
    return Table(
        columns, tuple(rows), caption="By incident, its cause first. Steps are the host trainer's."
    )


def _card(view: View, finding: Finding, *, twice: bool) -> Card:
    alert = finding.alert
    steps = [f"onset at step {alert.onset}", f"raised at step {finding.raised}"]
    if finding.escalated is not None:
        steps.append(f"worse at step {finding.escalated}")
    steps.append("still open" if finding.closed is None else f"closed at step {finding.closed}")
    if alert.stops:
        steps.append("stops the run")
    facts = f"{alert.finding} · {role_name(alert.role)} · {', '.join(steps)} · {alert.id}"
    power = strength(alert.statistic, alert.value, alert.baseline, alert.threshold)
    text = plain_words(alert.text) if alert.text else f"{power[:1].upper()}{power[1:]}."
    title = plain_words(alert.title)
    blocks: list[Block] = [Prose(text)]
    if alert.evidence is not None or alert.chance:
        blocks.append(Prose(f"How sure: {_certainty(alert)}."))
    blocks += [_statistic(view, finding), _numbers(view, finding, collapsed=twice)]
    known = all_cards().findings.get(alert.finding)
    if known is not None and known.sources:
        blocks.append(Prose(f"Threshold and advice rest on {'; '.join(known.sources)}."))
    if twice:
        blocks.append(
            Note(f"Texts from before and after step {alert.onset}: see the alert above it.")
        )
        return Card(_anchor(view, finding), title, finding.state, facts, tuple(blocks))
    shown = around(view, finding, f"{_anchor(view, finding)}-pair") or _carried(view, finding)
    if shown:
        blocks.append(Pairs(f"{role_name(alert.role)} before and after the onset", shown))
    elif alert.role == EVERYONE:
        blocks.append(Note("About all roles together; the section on texts has those of each."))
    else:
        blocks.append(
            Note(
                f"No texts of {role_name(alert.role)} from both sides of step {alert.onset} "
                "were kept."
            )
        )
    return Card(_anchor(view, finding), title, finding.state, facts, tuple(blocks))


def _certainty(alert: Alert) -> str:
    said = "" if alert.evidence is None else f"evidence {number(alert.evidence)}"
    return " ".join(word for word in (said, alert.chance) if word)


def _carried(view: View, finding: Finding) -> tuple[Diff, ...]:
    """The texts that the live alert carries, for runs whose kept texts are gone."""
    alert = finding.alert
    live = next((one for one in view.live_alerts if one.id == alert.id and one.pairs), alert)
    # The browser does not hold them, so nothing leads there.
    nowhere, when = ("", ""), ("before onset", "after onset")
    return tuple(
        compared(
            f"{_anchor(view, finding)}-pair-{index}",
            (
                Sample(pair.before_step, alert.role, pair.before, prompt=pair.prompt),
                Sample(pair.after_step, alert.role, pair.after, prompt=pair.prompt),
            ),
            nowhere,
            when=when,
            remark="Same prompt." if pair.prompt else "Different prompts.",
        )
        for index, pair in enumerate(live.pairs)
    )


def _statistic(view: View, finding: Finding) -> Block:
    alert = finding.alert
    series = view.replay.series.get((alert.detector, alert.role), ())
    curve = {step: math.nan if value is None else float(value) for step, value, _ in series}
    limit = {step: float(edge) for step, _, edge in series if edge is not None}
    if not curve:
        return Note("The detector gave no curve of its statistic.")
    marks = [Mark(alert.onset, f"onset {alert.onset}")]
    if finding.raised != alert.onset:
        marks.append(Mark(finding.raised, f"alert {finding.raised}"))
    lines = [role_line(view, alert.role, curve, label=role_name(alert.role))]
    if limit:
        kept = thinned(limit)
        label = f"threshold {number(limit[max(limit)])}"
        lines.append(Line(label, tuple(kept), tuple(kept.values()), style="limit"))
    name = statistic_name(alert.statistic) if alert.statistic else alert.detector
    odd = odd_values([curve], log=False)
    return Figure(
        f"{_anchor(view, finding)}-statistic",
        f"What the detector judged: {name}",
        "Healthy: does not cross the dashed threshold. The alert comes after the onset because "
        "the detector waits until the excursion persists; it judges nothing before its baseline "
        "is complete." + (f" Not drawn: {odd}." if odd else ""),
        (panel(view, role_name(alert.role), lines, marks=tuple(marks)),),
        table({name: curve, "threshold": limit}, [mark.step for mark in marks]),
    )


def _numbers(view: View, finding: Finding, *, collapsed: bool) -> Block:
    role, onset = finding.alert.role, finding.alert.onset
    before = view.baseline
    if before is None or before[1] >= onset:
        before = (view.span[0], onset - 1)
    since = view.since(finding)
    rows, same = [], []
    for quantity in QUANTITIES:
        curve = view.curve(role, quantity.name, quantity.attribute)
        a = average(view.inside(curve, before))
        b = average(view.inside(curve, since))
        if a is None and b is None:
            continue
        if _alike(a, b):
            same.append(quantity.title.lower())
            continue
        rows.append((Cell(quantity.heading(view.length_unit)), cell(a), cell(b), change(a, b)))
    if not rows and same:
        return Note(f"Within a tenth of before: {', '.join(same)}.")
    if not rows:
        return Note(f"No other statistics of {role_name(role)} were measured.")
    return Table(
        (
            "quantity",
            f"before (steps {before[0]}–{before[1]})",
            f"since the onset (steps {since[0]}–{since[1]})",
            "change",
        ),
        tuple(rows),
        title=f"{role_name(role)} in numbers",
        caption="Means over the records of each window."
        + (f" Within a tenth of before: {', '.join(same)}." if same else ""),
        collapsed=collapsed,
    )


def _alike(before: float | None, after: float | None) -> bool:
    """Whether a mean stayed within a tenth of what it was."""
    if before is None or after is None:
        return False
    return before == after or (before > 0 and 0.9 <= after / before <= 1.1)
