"""Section "Verdicts": the latest one per detector and role, and what is missing for the others."""

from __future__ import annotations

from roledrift.judgement import Verdict
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Cell, Section, Table
from roledrift.report.sections.names import role_name, statistic_name
from roledrift.report.statuses import status_of, still_open

PLACE = 30


def build(run: JudgedRun) -> Section:
    """Build the section."""
    reached, applicable = run.conclusion.reached, run.conclusion.applicable
    summary = f"{reached} of {applicable} reached"
    # Without a verdict, what each one needs is what there is to read.
    opened = run.conclusion.outcome == "no verdict"
    return Section("verdicts", "Verdicts", (matrix(run),), summary, opened)


def matrix(run: JudgedRun) -> Table:
    """Make a table of detectors by roles; while an alert is open, its severity is shown."""
    known = tuple(dict.fromkeys(verdict.detector for verdict in run.verdicts))
    detectors = tuple(
        dict.fromkeys(verdict.detector for verdict in run.verdicts if verdict.applies)
    )
    idle = [detector for detector in known if detector not in detectors]
    placed = {(verdict.detector, verdict.role): verdict for verdict in run.verdicts}
    others = {verdict.role for verdict in run.verdicts} - set(run.roles)
    roles = (*run.roles, *sorted(others))
    rows = tuple(
        (
            Cell(detector),
            *(_cell(run, placed.get((detector, role))) for role in roles),
        )
        for detector in detectors
    )
    return Table(
        columns=("detector", *(role_name(role) for role in roles)),
        rows=rows,
        caption="Latest state per detector and role; while an alert is open, its severity. Grey "
        "means no verdict, which is not a good one. A dash means that the detector does not apply."
        + (f" Not applicable to this run: {', '.join(idle)}." if idle else ""),
    )


def _cell(run: JudgedRun, verdict: Verdict | None) -> Cell:
    if verdict is None or not verdict.applies:
        return Cell("–")
    place = (verdict.detector, verdict.role)
    raised = [
        finding for finding in run.findings if (finding.alert.detector, finding.alert.role) == place
    ]
    raised.sort(key=lambda finding: finding.raised)
    href = f"#{run.key}-alert-{raised[-1].alert.id}" if raised else ""
    standing = next((finding for finding in raised if finding.closed is None), None)
    status = status_of(verdict, still_open(run.replay.alerts))
    if status == "no verdict":
        return Cell(status, state=status, note=_lacking(verdict), href=href)
    note = ""
    # An alert that is open began where it began, whatever the detector sees at the last step.
    onset = verdict.onset if standing is None else standing.alert.onset
    finding = verdict.finding if standing is None else standing.alert.finding
    if status != "ok" and onset is not None:
        note = f"since step {onset}"
        if finding and finding != verdict.detector:
            note = f"{finding}, {note}"
    elif raised:
        last = raised[-1]
        note = f"{last.state} at steps {last.alert.onset}–{last.closed}, closed"
    return Cell(status, verdict.value, status, note, href)


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
