"""Incidents: which alert is the cause, which are consequences, and the one story told of both.

An alert opens an incident, or joins one that is open and whose findings began not long before. The
cause is the alert that came first, unless a later one stands earlier in the chain of cause and
effect (settings, input, movement, texts, outcome) and began no later. A specific role goes before
"all roles". Every output repeats the incident word for word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from roledrift.judgement import LAYERS, SEVERITIES, Alert, Consequence, Incident, Severity
from roledrift.sums import EVERYONE

LINKED = 20
"""Steps after the latest onset of an incident within which a new finding still belongs to it."""

_MOST_TOLD = 2

TAKES_OVER = 8
"""Steps after the first finding within which one that is reported later can be its cause."""

SLACK = 5
"""Steps by which onsets, which are estimates, may be off."""


@dataclass(slots=True)
class _Case:
    """An incident in the making: its alerts by id, in the order in which they were reported."""

    alerts: dict[str, Alert] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    cause: str = ""
    reported: int = 0
    """Step of the first alert; that alert itself is replaced when it escalates."""

    @property
    def open(self) -> bool:
        return len(self.closed) < len(self.alerts)

    @property
    def latest(self) -> int:
        """Latest onset of a finding that still stands, else the latest of all."""
        onsets = [alert.onset for id_, alert in self.alerts.items() if id_ not in self.closed]
        return max(onsets or [alert.onset for alert in self.alerts.values()])

    @property
    def severity(self) -> Severity:
        return min((alert.graded for alert in self.alerts.values()), key=SEVERITIES.index)


class Incidents:
    """Groups the alerts of a run into incidents, as they come in."""

    def __init__(self) -> None:
        self._cases: list[_Case] = []
        self._written: dict[str, Incident] = {}
        self.damage = ""
        """What the run has lost so far; set by the suite before :meth:`update`."""

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """All incidents as they stand, the worst and earliest first; the first is the headline."""
        return tuple(sorted(self._written.values(), key=lambda incident: incident.rank))

    def update(self, step: int, alerts: Sequence[Alert]) -> tuple[Incident, ...]:
        """Take the alert transitions of one step; the incidents that changed."""
        for alert in alerts:
            self._take(alert)
        changed = []
        for case in self._cases:
            before = self._written.get(_id(case))
            if before is not None and before.state == "closed" and not case.open:
                continue
            if before is not None and not alerts:
                now = _worse(case, before, step, self.damage)
            else:
                now = _incident(case, step, self.damage)
                if before is not None and not _news(before, now):
                    continue
            if now is not before:
                self._written[now.id] = now
                changed.append(now)
        return tuple(changed)

    def _take(self, alert: Alert) -> None:
        case = next((candidate for candidate in self._cases if alert.id in candidate.alerts), None)
        if alert.state == "closed":
            if case is not None:
                case.closed.add(alert.id)
            return
        if case is None:
            case = next(
                (candidate for candidate in self._cases if _belongs(alert, candidate)), None
            )
            if case is None:
                case = _Case(reported=alert.step)
                self._cases.append(case)
        known = case.alerts.get(alert.id)
        # An alert that escalates was reported when it opened.
        case.alerts[alert.id] = alert if known is None else replace(alert, step=known.step)
        case.closed.discard(alert.id)
        case.cause = _cause(case)


def _news(before: Incident, now: Incident) -> bool:
    """Whether an incident has changed.

    Training accuracy changes in every step: damage that is told by it alone, and only grows, is
    brought up to date now and then. A validation is always news.
    """
    if replace(now, step=before.step) == before:
        return False
    same = replace(now, step=before.step, damage=before.damage, sentence=before.sentence)
    grows = _creeps(before, now.damage) and same == before
    return not grows or now.step - before.step >= SLACK


def _creeps(before: Incident, damage: str) -> bool:
    return bool(before.damage) and damage.startswith("training")


def _worse(case: _Case, before: Incident, step: int, damage: str) -> Incident:
    """An incident that no alert has touched: only its damage may be news."""
    if before.damage == damage or (_creeps(before, damage) and step - before.step < SLACK):
        return before
    cause, open_ = case.alerts[case.cause], case.open
    sentence = _sentence(cause, before.cause, before.consequences, damage, open_=open_)
    return replace(before, step=step, damage=damage, sentence=sentence)


def _id(case: _Case) -> str:
    return next(iter(case.alerts))


def _belongs(alert: Alert, case: _Case) -> bool:
    first = case.alerts[case.cause].onset
    return case.open and first - SLACK <= alert.onset <= case.latest + LINKED


def _cause(case: _Case) -> str:
    """Id of the alert that is the cause.

    A changed setting explains an incident but is not what is wrong with it: it is the cause only
    while nothing else has been found.
    """
    ids = [id_ for id_, alert in case.alerts.items() if _layer(alert) > 0] or list(case.alerts)
    known = case.alerts.get(case.cause)
    cause = case.cause if known is not None and case.cause in ids else ids[0]
    # The first cause stays the cause when the run gets sicker.
    first = min(case.alerts[id_].step for id_ in ids)
    for id_ in ids:
        soon = case.alerts[id_].step <= first + TAKES_OVER
        if soon and _precedes(case.alerts[id_], case.alerts[cause]):
            cause = id_
    return cause


def _precedes(alert: Alert, cause: Alert) -> bool:
    """Whether ``alert`` explains ``cause`` rather than the other way round."""
    if alert.onset > cause.onset + SLACK:
        return False
    layer, cause_layer = _layer(alert), _layer(cause)
    if layer != cause_layer:
        return layer < cause_layer
    if (alert.role == EVERYONE) != (cause.role == EVERYONE):
        return cause.role == EVERYONE
    return alert.onset < cause.onset


def _layer(alert: Alert) -> int:
    return LAYERS.index(alert.layer or "text")


def _incident(case: _Case, step: int, damage: str) -> Incident:
    cause = case.alerts[case.cause]
    setting = next((alert for alert in case.alerts.values() if alert.layer == "setting"), None)
    others = [
        alert for alert in case.alerts.values() if alert is not cause and alert is not setting
    ]
    consequences = tuple(
        Consequence(
            alert=alert.id,
            role=alert.role,
            finding=alert.finding,
            severity=alert.graded,
            onset=alert.onset,
            step=alert.step,
            text=alert.title,
            state="closed" if alert.id in case.closed else "open",
        )
        for alert in sorted(others, key=lambda alert: (alert.onset, alert.step))
    )
    why = cause.cause
    if not why and setting is not None and setting is not cause:
        why = setting.cause or setting.title
    return Incident(
        id=_id(case),
        step=step,
        state="open" if case.open else "closed",
        severity=case.severity,
        role=cause.role,
        finding=cause.finding,
        onset=cause.onset,
        reported=case.reported,
        sentence=_sentence(cause, why, consequences, damage, open_=case.open),
        cause=why,
        consequences=consequences,
        damage=damage,
        evidence=cause.text,
        advice=cause.advice,
        checkpoint=cause.checkpoint,
        alerts=(cause.id, *(id_ for id_ in case.alerts if id_ != cause.id)),
    )


def _sentence(
    cause: Alert, why: str, consequences: Sequence[Consequence], damage: str, *, open_: bool
) -> str:
    """The incident for people: the cause, why, what followed, what was lost."""
    if cause.layer == "setting" and why:
        whose = "" if cause.role == EVERYONE or cause.role in why else f" ({cause.role})"
        text = f"{why[:1].upper()}{why[1:]} at step {cause.onset}{whose}."
    else:
        text = f"{cause.title}, after {why}." if why else f"{cause.title}."
    # That all roles move says nothing that a role's own finding does not; damage has its own words.
    worth = [consequence for consequence in consequences if consequence.role != EVERYONE]
    for consequence in worth[:_MOST_TOLD]:
        text += f" {consequence.text}."
    if len(worth) > _MOST_TOLD:
        more = len(worth) - _MOST_TOLD
        text += f" {more} more finding{'s' if more > 1 else ''} followed."
    if not damage:
        text += "".join(
            f" {consequence.text}." for consequence in consequences if consequence.role == EVERYONE
        )
    else:
        text += f" {damage[:1].upper()}{damage[1:]}."
    return text if open_ else f"{text} It has passed."
