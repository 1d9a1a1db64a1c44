"""Verdict: one plain sentence, the matrix of roles and detectors, and what to do next."""

from __future__ import annotations

import math

from roledrift.records import Verdict
from roledrift.report.model import Advice, Block, Cell, Mood, Section, Table
from roledrift.report.numbers import course, number, ratio
from roledrift.report.sections.names import (
    detector_name,
    finding_name,
    finding_title,
    role_name,
    statistic_name,
)
from roledrift.report.view import Finding, View
from roledrift.sums import EVERYONE

_ORDER: tuple[Mood, ...] = ("no verdict", "ok", "watch", "drift")


def build(view: View) -> Section:
    """The verdict section."""
    blocks: list[Block] = [_matrix(view)]
    advice = tuple(dict.fromkeys(item for one in view.findings for item in one.alert.advice))
    if advice:
        blocks.append(Advice("Do next", advice[:6]))
    return Section("verdict", "Verdict", tuple(blocks))


def overall(view: View) -> Mood:
    """The worst state that the run reached.

    A run of which less than half could be judged is not green: it has no verdict.
    """
    states: list[Mood] = [one.state for one in view.verdicts]
    states += [one.state for one in view.findings]
    if not view.records or not states:
        return "no verdict"
    worst = max(states, key=_ORDER.index)
    return "no verdict" if worst == "ok" and _mostly_blind(view) else worst


def headline(view: View) -> str:
    """The verdict in words: who, what, since when, how strong, and what the reward did."""
    if not view.records:
        return "No steps are recorded in this run yet, so there is no verdict."
    if view.findings:
        return _found(view, view.findings[0])
    judged = [one for one in view.verdicts if one.state != "no verdict"]
    watched = [one for one in judged if one.state in ("watch", "drift")]
    first, last = view.records[0].step, view.records[-1].step
    if watched:
        reason = watched[0].reason or finding_name(watched[0].finding or watched[0].detector)
        return f"{role_name(watched[0].role)}: {reason.rstrip('.')}. No alert has been raised."
    if not judged:
        return (
            f"No verdict: {len(view.records)} records (steps {first}–{last}) did not give any "
            "detector what it needs."
        )
    blind, asked = _unjudged(view), sum(one.applies for one in view.verdicts)
    if _mostly_blind(view):
        return (
            f"No drift found in steps {first}–{last}, but only {asked - len(blind)} of {asked} "
            "judgements were possible."
        )
    has = "has" if len(blind) == 1 else "have"
    tail = f" {len(blind)} of {asked} judgements {has} no verdict." if blind else ""
    return f"No drift found in steps {first}–{last}.{tail}"


def _mostly_blind(view: View) -> bool:
    return 2 * len(_unjudged(view)) > sum(one.applies for one in view.verdicts)


def _unjudged(view: View) -> list[Verdict]:
    return [one for one in view.verdicts if one.state == "no verdict" and one.applies]


def notices(view: View) -> tuple[str, ...]:
    """What to know before the verdict is believed: how the run ended, what could not be judged."""
    found = []
    if view.state == "open" and view.records:
        last = view.records[-1]
        when = f", written {last.time}" if last.time else ""
        found.append(
            f"This run was not closed: it crashed, was killed, or is still running. Its last "
            f"record is step {last.step}{when}."
        )
    if any(record.labels.get("source") == "foreign" for record in view.records):
        whose = f" of {view.header.host}" if view.header.host else ""
        found.append(
            f"Imported from a log{whose}: what it does not hold cannot be judged. Grey cells say "
            "what is needed; watch the next run live to get it."
        )
    return tuple(found)


def _found(view: View, finding: Finding) -> str:
    alert, name = finding.alert, finding_name(finding.alert.finding)
    verb = "drifts" if finding.state == "drift" else "was watched"
    # What is said of all roles is a sentence of its own.
    what = name[:1].upper() + name[1:] if alert.role == EVERYONE else f"{alert.role} {verb}: {name}"
    until = f" until step {finding.closed}" if finding.closed is not None else ""
    sentence = f"{what} since step {alert.onset}{until} (alert at step {finding.raised}), "
    sentence += strength(alert.statistic, alert.value, alert.baseline, alert.threshold)
    sentence += f" when raised{_peak(view, finding)}."
    return sentence


def strength(
    statistic: str, value: float | None, baseline: float | None, threshold: float | None
) -> str:
    """How strong a finding is, with the numbers that are known."""
    name = statistic_name(statistic) if statistic else "the statistic"
    if value is None:
        return f"judged by {name}"
    if baseline is not None and baseline > 0 and value > 0:
        # A baseline of 1 is that of a value which is a ratio already.
        values = "" if baseline == 1 else f" ({number(baseline)} → {number(value)})"
        return f"{name} at {ratio(value / baseline)} of its baseline{values}"
    limit = f", threshold {number(threshold)}" if threshold is not None else ""
    return f"{name} at {number(value)}{limit}"


def _peak(view: View, finding: Finding) -> str:
    """The largest value since the onset, where that is more than when the alert was raised."""
    alert, since = finding.alert, view.since(finding)
    series = view.replay.series.get((alert.detector, alert.role), ())
    values = {
        step: value
        for step, value, _ in series
        if since[0] <= step <= since[1] and math.isfinite(value)
    }
    if not values or alert.value is None:
        return ""
    step = max(values, key=lambda one: values[one])
    value = values[step]
    if value <= 1.02 * alert.value:
        return ""
    if alert.baseline is not None and alert.baseline > 0:
        return f", {ratio(value / alert.baseline)} at its peak (step {step})"
    return f", {number(value)} at its peak (step {step})"


def meanwhile(view: View) -> str:
    """What reward and validation did during the worst finding, and how many more there are."""
    if not view.findings:
        return ""
    finding = view.findings[0]
    since = view.since(finding)
    before = view.baseline or (view.span[0], finding.alert.onset - 1)
    words = course(view.inside(view.reward, before), view.inside(view.reward, since))
    parts = [f"reward {words}"] if words else []
    # Validation is rare: single points, named by their steps, say more than means do.
    earlier = [step for step in sorted(view.validation) if step <= finding.alert.onset]
    later = [step for step in sorted(view.validation) if since[0] < step <= since[1]]
    if earlier and later:
        a, b = view.validation[earlier[-1]], view.validation[later[-1]]
        verb = "stayed level" if abs(b - a) <= 0.02 else ("rose" if b > a else "fell")
        parts.append(
            f"validation accuracy {verb} ({number(a)} at step {earlier[-1]}, "
            f"{number(b)} at step {later[-1]})"
        )
    text = f"Meanwhile {' and '.join(parts)}. " if parts else ""
    others = len(view.findings) - 1
    if others:
        text += f"{others} more alert{'s' if others > 1 else ''} below"
        first = min(view.findings, key=lambda one: one.raised)
        if first.raised < finding.raised:
            which = "the first of them" if others > 1 else "raised"
            text += (
                f", {which} at step {first.raised} already ({role_name(first.alert.role)}: "
                f"{finding_name(first.alert.finding)})"
            )
        text += "."
    return text.strip()


def _matrix(view: View) -> Table:
    detectors = tuple(dict.fromkeys(one.detector for one in view.verdicts))
    placed = {(one.detector, one.role): one for one in view.verdicts}
    others = {one.role for one in view.verdicts} - set(view.roles)
    roles = (*view.roles, *sorted(others))
    rows = tuple(
        (
            Cell(detector_name(detector)),
            *(_cell(view, placed.get((detector, role))) for role in roles),
        )
        for detector in detectors
    )
    return Table(
        columns=("detector", *(role_name(role) for role in roles)),
        rows=rows,
        caption="Latest state per detector and role. Grey is no judgement, not a good one. A dash: "
        "the detector is not about that role.",
    )


def _cell(view: View, verdict: Verdict | None) -> Cell:
    if verdict is None:
        return Cell("–")
    if not verdict.applies:
        return Cell("–")
    raised = [
        one
        for one in view.findings
        if (one.alert.detector, one.alert.role) == (verdict.detector, verdict.role)
    ]
    href = f"#{view.key}-alert-{raised[0].alert.id}" if raised else ""
    if verdict.state == "no verdict":
        note = ", ".join(map(_need, verdict.needs))
        note = f"needs {note}" if note else (verdict.reason or "not enough evidence")
        if verdict.reason.startswith("withheld: "):
            cause = verdict.reason.removeprefix("withheld: ").split(",")[0]
            note = f"withheld, the input is suspect: {cause.replace('_', ' ')}"
        return Cell("no verdict", state="no verdict", note=note, href=href)
    note = ""
    # An alert that is open began where it began, whatever the detector sees at the last step.
    began = [one.alert.onset for one in raised if one.closed is None]
    onset = began[0] if began else verdict.onset
    if verdict.state in ("watch", "drift") and onset is not None:
        note = f"since step {onset}"
        if verdict.finding and verdict.finding != verdict.detector:
            note = f"{finding_title(verdict.finding)}, {note}"
    elif raised and raised[0].closed is not None:
        note = f"{raised[0].state} at steps {raised[0].alert.onset}–{raised[0].closed}, closed"
    return Cell(verdict.state, verdict.value, verdict.state, note, href)


def _need(need: str) -> str:
    """What is lacking, by its title on the page; what supplies it may stand in brackets."""
    name, bracket, how = need.partition(" (")
    return statistic_name(name) + bracket + how
