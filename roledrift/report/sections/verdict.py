"""Verdict: one plain sentence, the matrix of roles and detectors, and what to do next."""

from __future__ import annotations

import math

from roledrift.records import Verdict
from roledrift.report.model import Advice, Block, Cell, Mood, Section, Table
from roledrift.report.numbers import course, number, ratio
from roledrift.report.sections.names import detector_name, finding_name, finding_title, role_name
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
    """The worst state that the run reached; a run without any judgement has no verdict."""
    states: list[Mood] = [one.state for one in view.verdicts]
    states += [one.state for one in view.findings]
    if not view.records or not states:
        return "no verdict"
    return max(states, key=_ORDER.index)


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
    blind = len(view.verdicts) - len(judged)
    tail = f" {blind} of {len(view.verdicts)} judgements have no verdict." if blind else ""
    return f"No drift found in steps {first}–{last}.{tail}"


def _found(view: View, finding: Finding) -> str:
    alert = finding.alert
    together = alert.role == EVERYONE
    verb = ("drift" if together else "drifts") if finding.state == "drift" else "was watched"
    until = f" until step {finding.closed}" if finding.closed is not None else ""
    sentence = (
        f"{role_name(alert.role)} {verb}: {finding_name(alert.finding)} "
        f"since step {alert.onset}{until} (alert at step {finding.raised}), "
    )
    sentence += strength(alert.statistic, alert.value, alert.baseline, alert.threshold)
    sentence += f" when raised{_peak(view, finding)}."
    return sentence


def strength(
    statistic: str, value: float | None, baseline: float | None, threshold: float | None
) -> str:
    """How strong a finding is, with the numbers that are known."""
    name = statistic or "the statistic"
    if value is None:
        return f"judged by {name}"
    if baseline is not None and baseline > 0 and value > 0:
        return (
            f"{name} at {ratio(value / baseline)} of its baseline "
            f"({number(baseline)} → {number(value)})"
        )
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
        caption="Latest state per detector and role; grey is no judgement, not a good one; "
        "a dash is a role that the detector is not about.",
    )


def _cell(view: View, verdict: Verdict | None) -> Cell:
    if verdict is None:
        return Cell("–")
    if verdict.state == "no verdict" and verdict.reason.startswith("does not apply"):
        return Cell("–", note="does not apply")
    raised = [
        one
        for one in view.findings
        if (one.alert.detector, one.alert.role) == (verdict.detector, verdict.role)
    ]
    href = f"#{view.key}-alert-{raised[0].alert.id}" if raised else ""
    if verdict.state == "no verdict":
        note = ", ".join(verdict.needs)
        note = f"needs {note}" if note else (verdict.reason or "not enough evidence")
        return Cell("no verdict", state="no verdict", note=note, href=href)
    note = ""
    if verdict.state in ("watch", "drift") and verdict.onset is not None:
        note = f"since step {verdict.onset}"
        if verdict.finding and verdict.finding != verdict.detector:
            note = f"{finding_title(verdict.finding)} only, {note}"
    elif raised and raised[0].closed is not None:
        note = f"{raised[0].state} at steps {raised[0].alert.onset}–{raised[0].closed}, closed"
    return Cell(verdict.state, verdict.value, verdict.state, note, href)
