"""Verdict: the incident with what followed, what to do next, and the matrix of all verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from roledrift.judgement import Incident, Verdict
from roledrift.report.model import Advice, Block, Cell, Note, Prose, Section, Table
from roledrift.report.moods import incident_mood, mood_of, still_open
from roledrift.report.numbers import count, number, ratio
from roledrift.report.sections.names import plain_words, role_name, statistic_name
from roledrift.report.view import View

MATRIX = "All verdicts"
"""Title of the matrix of detectors and roles."""


def build(view: View) -> Section:
    """The verdict section."""
    blocks: list[Block] = []
    incident = view.conclusion.incident
    if incident is not None:
        blocks += _incident(view, incident)
    others = view.replay.incidents[1:]
    if others:
        blocks.append(_others(others))
    return Section("verdict", "Verdict", (*blocks, _matrix(view)))


def _incident(view: View, incident: Incident) -> list[Block]:
    """The incident of the headline: its evidence, what to do, what followed."""
    reported = f"First reported at step {incident.reported}."
    evidence = plain_words(incident.evidence)
    blocks: list[Block] = [Prose(" ".join(filter(None, (reported, evidence))))]
    if incident.state == "open" and incident.advice:
        blocks.append(Advice("Do next", incident.advice))
    kept = incident.checkpoint if incident.state == "open" else None
    if kept is not None and not any(kept.path in one for one in incident.advice):
        blocks.append(Note(f"Last checkpoint from before the onset: step {kept.step}, {kept.path}"))
    if incident.consequences:
        blocks.append(_consequences(view, incident))
    return blocks


def _consequences(view: View, incident: Incident) -> Table:
    known = {one.alert.id for one in view.findings}
    rows = tuple(
        (
            count(one.onset),
            Cell(one.severity if one.state == "open" else "closed",
                 state=one.severity if one.state == "open" else "closed"),
            Cell(role_name(one.role)),
            Cell(one.finding, href=f"#{view.key}-alert-{one.alert}" if one.alert in known else ""),
            Cell(plain_words(one.text)),
            count(one.step),
        )
        for one in incident.consequences
    )  # fmt: skip
    columns = ("since step", "severity", "role", "finding", "what", "reported at step")
    return Table(columns, rows, title="What followed")


def _others(incidents: Sequence[Incident]) -> Table:
    rows = tuple(
        (
            count(one.onset),
            Cell(incident_mood(one), state=incident_mood(one)),
            Cell(role_name(one.role)),
            Cell(one.finding),
            Cell(one.sentence),
        )
        for one in incidents
    )
    columns = ("since step", "state", "role", "finding", "what happened")
    return Table(columns, rows, title="Further incidents")


def notices(view: View) -> tuple[str, ...]:
    """Caveats to the verdict: how the run ended, and what could not be judged."""
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


def _matrix(view: View) -> Table:
    detectors = tuple(dict.fromkeys(one.detector for one in view.verdicts))
    placed = {(one.detector, one.role): one for one in view.verdicts}
    others = {one.role for one in view.verdicts} - set(view.roles)
    roles = (*view.roles, *sorted(others))
    rows = tuple(
        (
            Cell(detector),
            *(_cell(view, placed.get((detector, role))) for role in roles),
        )
        for detector in detectors
    )
    return Table(
        columns=("detector", *(role_name(role) for role in roles)),
        rows=rows,
        title=MATRIX,
        caption="Latest state per detector and role; while an alert is open, its severity. Grey "
        "means no verdict, which is not a good one. A dash means that the detector does not apply.",
    )


def _cell(view: View, verdict: Verdict | None) -> Cell:
    if verdict is None or not verdict.applies:
        return Cell("–")
    place = (verdict.detector, verdict.role)
    raised = [one for one in view.findings if (one.alert.detector, one.alert.role) == place]
    raised.sort(key=lambda one: one.raised)
    href = f"#{view.key}-alert-{raised[-1].alert.id}" if raised else ""
    standing = next((one for one in raised if one.closed is None), None)
    mood = mood_of(verdict, still_open(view.replay.alerts))
    if mood == "no verdict":
        return Cell(mood, state=mood, note=_lacking(verdict), href=href)
    note = ""
    # An alert that is open began where it began, whatever the detector sees at the last step.
    onset = verdict.onset if standing is None else standing.alert.onset
    finding = verdict.finding if standing is None else standing.alert.finding
    if mood != "ok" and onset is not None:
        note = f"since step {onset}"
        if finding and finding != verdict.detector:
            note = f"{finding}, {note}"
    elif raised:
        last = raised[-1]
        note = f"{last.state} at steps {last.alert.onset}–{last.closed}, closed"
    return Cell(mood, verdict.value, mood, note, href)


def _lacking(verdict: Verdict) -> str:
    """Why there is no verdict."""
    if verdict.reason.startswith("withheld: "):
        cause = verdict.reason.removeprefix("withheld: ").split(",")[0]
        return f"withheld, the input is suspect: {cause}"
    needs = ", ".join(map(_need, verdict.needs))
    return f"needs {needs}" if needs else (verdict.reason or "not enough evidence")


def _need(need: str) -> str:
    """What is lacking, by its title on the page; what supplies it may stand in brackets."""
    name, bracket, how = need.partition(" (")
    return statistic_name(name) + bracket + how
