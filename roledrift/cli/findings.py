"""Findings of a replayed run: their severity, and which of them count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from roledrift.config import near
from roledrift.detect.catalogue import all_cards, known_findings
from roledrift.detect.suite import Replay
from roledrift.errors import ConfigError
from roledrift.judgement import SEVERITIES, Alert, Incident, Severity
from roledrift.report.statuses import holds

HEARTBEAT = "heartbeat"
COUNTS: Mapping[str, tuple[Severity, ...]] = {
    "failing": SEVERITIES[:1],
    "input": SEVERITIES[:2],
    "suspicious": SEVERITIES,
    "never": (),
}
"""Word of ``--fail-on`` to the severities that make a run fail the check."""


@dataclass(frozen=True, slots=True)
class CheckedFinding:
    """An alert from its opening on, or a silence."""

    role: str
    detector: str
    finding: str
    severity: Severity
    since: int
    state: Literal["open", "closed"]
    text: str
    id: str = ""
    incident: str = ""
    sources: tuple[str, ...] = ()


def check_names(names: Sequence[str]) -> None:
    """Refuse names that no finding has.

    Raises:
        ConfigError: If there is no finding of such a name.
    """
    known = known_findings()
    for name in names:
        if name not in known:
            raise ConfigError(f"--finding: unknown finding {name!r}{near(name, list(known))}")


def findings_of(replayed: Replay) -> tuple[CheckedFinding, ...]:
    """Return every alert of the whole run, worst first, then by onset.

    What is merely watched at the last step is no finding.
    """
    transitions: dict[str, list[Alert]] = {}
    for alert in replayed.alerts:
        transitions.setdefault(alert.id, []).append(alert)
    findings = [_finding(history, replayed.incidents) for history in transitions.values()]
    return tuple(
        sorted(findings, key=lambda finding: (SEVERITIES.index(finding.severity), finding.since))
    )


def _finding(history: Sequence[Alert], incidents: Sequence[Incident]) -> CheckedFinding:
    # The closing transition may carry a milder level; what counts is how bad it got.
    raised = [alert for alert in history if alert.state != "closed"] or history
    worst = min(raised, key=lambda alert: SEVERITIES.index(alert.graded))
    incident = next((incident for incident in incidents if holds(incident, worst)), None)
    known = all_cards().findings.get(worst.finding)
    return CheckedFinding(
        role=worst.role,
        detector=worst.detector,
        finding=worst.finding,
        severity=worst.graded,
        since=worst.onset,
        state="closed" if history[-1].state == "closed" else "open",
        text=worst.title,
        id=worst.id,
        incident="" if incident is None else incident.id,
        sources=() if known is None else known.sources,
    )


def silence(step: int, quiet: float) -> CheckedFinding:
    """Make the finding for a run that has gone silent."""
    return CheckedFinding(
        role="*",
        detector=HEARTBEAT,
        finding="silent",
        severity="suspicious",
        since=step,
        state="open",
        text=f"Nothing has been recorded for {quiet:.0f} s since step {step}. "
        "The run may have crashed.",
    )
