"""Notices to a person while a run goes on: one per change of an incident that matters.

An incident is reported when it opens, when it gets worse, when another cause is found for it and
when it closes, with its own sentence, word for word. Further findings are reported in one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from roledrift.judgement import LEVEL_OF, SEVERITIES, Alert, Incident, Level, Severity

Change = Literal["opened", "worsened", "revised", "followed", "closed", "silent", "resumed"]
"""``revised``: an earlier cause was found. ``followed``: a further finding. The last two are about
a run from which no step comes."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One message to a person.

    Attributes:
        change: What happened.
        step: Step at which it happened.
        text: The message: the sentence of the incident, or one line.
        incident: The incident as it stands now; None for notices about silence.
        alert: The alert that brought the change, with its numbers and texts, if one did.
        stops: True if the user opted in to stop the run on what was found.
    """

    change: Change
    step: int
    text: str
    incident: Incident | None = None
    alert: Alert | None = None
    stops: bool = False

    @property
    def severity(self) -> Severity | None:
        """How bad it is; None for what is over."""
        if self.change in ("closed", "resumed"):
            return None
        return "suspicious" if self.incident is None else self.incident.severity

    @property
    def level(self) -> Level:
        """The log level of the severity; what is over is INFO."""
        return "INFO" if self.severity is None else LEVEL_OF[self.severity]


class Notices:
    """Turns changed incidents into notices."""

    def __init__(self) -> None:
        self._known: dict[str, Incident] = {}

    @property
    def known(self) -> tuple[Incident, ...]:
        """Incidents as they last stood."""
        return tuple(self._known.values())

    def update(self, changed: Iterable[Incident], alerts: Sequence[Alert]) -> tuple[Notice, ...]:
        """Compare incidents with what was last reported about them."""
        notices = []
        for incident in changed:
            change = _change(self._known.get(incident.id), incident)
            if change is not None:
                notices.append(_notice(change, self._known.get(incident.id), incident, alerts))
            self._known[incident.id] = incident
        return tuple(notices)


def _change(before: Incident | None, now: Incident) -> Change | None:
    if now.state == "closed":
        return None if before is None or before.state == "closed" else "closed"
    if before is None or before.state == "closed":
        return "opened"
    if SEVERITIES.index(now.severity) < SEVERITIES.index(before.severity):
        return "worsened"
    if (before.role, before.finding) != (now.role, now.finding):
        return "revised"
    return "followed" if _gained(before, now) else None


def _gained(before: Incident | None, now: Incident) -> list[str]:
    """Findings that ``now`` has and ``before`` had not, as sentences without their full stops."""
    known = (
        {consequence.alert for consequence in before.consequences} if before is not None else set()
    )
    return [consequence.text for consequence in now.consequences if consequence.alert not in known]


def _notice(
    change: Change, before: Incident | None, now: Incident, alerts: Sequence[Alert]
) -> Notice:
    raised = [alert for alert in alerts if alert.state != "closed"]
    about = [alert for alert in raised if alert.id in now.alerts[:1]]
    worst = min(raised, key=lambda alert: SEVERITIES.index(alert.graded), default=None)
    text = now.sentence
    if change == "followed":
        text = f"{'. '.join(_gained(before, now))} (incident {now.id}: {now.role} {now.finding})"
        ids = {consequence.alert for consequence in now.consequences}
        about = [alert for alert in raised if alert.id in ids]
    return Notice(
        change=change,
        step=now.step,
        text=text,
        incident=now,
        alert=None if change == "closed" else (about[0] if about else worst),
        stops=any(alert.stops for alert in raised),
    )
