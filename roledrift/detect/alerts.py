"""From verdicts to alerts: when a finding opens, escalates and closes, and what is said about it.

Every transition is sent once. A verdict of ``watch`` opens nothing; it is for the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from roledrift.config import Config
from roledrift.detect import remedies
from roledrift.detect.cards import Catalogue, Finding
from roledrift.judgement import LEVEL_OF, SEVERITIES, Alert, Verdict, alert_id
from roledrift.records import Checkpoint
from roledrift.sums import EVERYONE
from roledrift.workflow import Workflow

TITLE_LIMIT = 100
"""Titles are shorter than this: trackers and chats cut longer ones."""

_MOST_TIMES = 9999.0
"""Larger ratios are cut, because their digits would push the rest out of the title."""

_SHARED = (
    "detector", "finding", "role", "statistic", "value", "threshold", "baseline", "evidence",
    "chance", "cause",
)  # fmt: skip
"""What an alert repeats of its verdict."""

_UNKNOWN = Finding("", "{who} has drifted since step {onset}", "", "text", "suspicious")


@dataclass(slots=True)
class _Open:
    alert: Alert
    clean: int = 0


class AlertManager:
    """Which alerts are open, per detector and role.

    Args:
        workflow: For the role's policy.
        config: Which findings stop the run, and how many clean records close an alert.
        catalogue: What the findings are called and what to do about them.
        host: Trainer that is watched, for the advice; see :func:`roledrift.detect.remedies.family`.
    """

    def __init__(
        self, workflow: Workflow, config: Config, catalogue: Catalogue, *, host: str = ""
    ) -> None:
        self._workflow = workflow
        self._host = remedies.family(host)
        self._catalogue = catalogue
        self._checkpoints: tuple[Checkpoint, ...] = ()
        self._stop_on = frozenset(config.stop_on)
        self._only = frozenset(config.findings)
        self._close_after = max(config.close_after, 1)
        self._open: dict[tuple[str, str], _Open] = {}

    @property
    def open(self) -> Mapping[str, Alert]:
        """Open alerts by id."""
        return {opened.alert.id: opened.alert for opened in self._open.values()}

    def note(self, checkpoints: tuple[Checkpoint, ...]) -> None:
        """The checkpoints that exist now; empty for no news."""
        self._checkpoints = checkpoints or self._checkpoints

    def observe(self, step: int, verdict: Verdict) -> Alert | None:
        """Take one verdict; the transition it causes, if any.

        ``drift`` opens or escalates, ``ok`` counts toward closing, ``watch`` ends such a count, and
        ``no verdict`` says nothing.
        """
        drift = verdict.state == "drift"
        if not drift and not self._open:
            return None
        if drift and self._only and verdict.finding not in self._only:
            return None
        key = (verdict.detector, verdict.role)
        known = self._open.get(key)
        if known is None:
            if not drift:
                return None
            onset = step if verdict.onset is None else verdict.onset
            self._open[key] = _Open(self._alert(step, verdict, onset))
            return self._open[key].alert
        if drift:
            return self._again(step, verdict, known)
        if verdict.state == "no verdict":
            return None
        known.clean = known.clean + 1 if verdict.state == "ok" else 0
        if known.clean < self._close_after:
            return None
        del self._open[key]
        return closed(known.alert, step, f"clean for {known.clean} records: {verdict.reason}")

    def _again(self, step: int, verdict: Verdict, known: _Open) -> Alert | None:
        known.clean = 0
        severity = verdict.severity or self._finding(verdict).severity
        if SEVERITIES.index(severity) >= SEVERITIES.index(known.alert.graded):
            return None
        # The id is fixed when the alert opens: a later estimate of the onset must not rename it.
        known.alert = replace(self._alert(step, verdict, known.alert.onset), state="escalated")
        return known.alert

    def _finding(self, verdict: Verdict) -> Finding:
        return self._catalogue.findings.get(verdict.finding, _UNKNOWN)

    def _alert(self, step: int, verdict: Verdict, onset: int) -> Alert:
        finding = self._finding(verdict)
        severity = verdict.severity or finding.severity
        role, failing = verdict.role, severity == "failing"
        clean = [checkpoint for checkpoint in self._checkpoints if checkpoint.step < onset]
        checkpoint = max(clean, key=lambda checkpoint: checkpoint.step, default=None)
        advice = [remedies.worded(remedy, role=role, host=self._host) for remedy in finding.advice]
        if failing:
            advice.insert(0, remedies.go_back(onset, checkpoint, self._host))
        return Alert(
            id=alert_id(verdict.detector, role, onset),
            policy=self._workflow.policy_of(role) if role in self._workflow.role_names else "",
            level=LEVEL_OF[severity],
            state="open",
            step=step,
            onset=onset,
            title=title(verdict, finding, onset),
            text=_sentence(verdict.reason),
            advice=tuple(advice),
            stops=bool(self._stop_on & {verdict.finding, severity}),
            checkpoint=checkpoint if failing else None,
            severity=severity,
            layer=finding.layer,
            **{name: getattr(verdict, name) for name in _SHARED},
        )


def closed(alert: Alert, step: int, why: str) -> Alert:
    """The transition that closes ``alert``."""
    return replace(
        alert,
        level="INFO",
        state="closed",
        step=step,
        title=_short(f"{alert.finding} of {_whose(alert.role)} has passed"),
        text=_sentence(why),
        advice=(),
        stops=False,
        pairs=(),
        checkpoint=None,
    )


def _whose(role: str) -> str:
    return "all roles" if role == EVERYONE else f"the {role}"


def title(verdict: Verdict, finding: Finding, onset: int) -> str:
    """The finding as one short sentence without its full stop, below ``TITLE_LIMIT`` characters."""
    value, base = verdict.value, verdict.baseline
    template = finding.title
    if "{ratio" in template and not (value is not None and base):
        template = "{who} shows " + finding.name + " since step {onset}"
    the = _whose(verdict.role)
    if verdict.role == "policy":  # the role of a run that names none
        template = template.replace("policy of {the}", "policy")
    return _short(
        template.format(
            who=the[:1].upper() + the[1:],
            the=the,
            ratio=min(value / base, _MOST_TIMES) if value is not None and base else 0.0,
            value=0.0 if value is None else value,
            base=base or 0.0,
            onset=onset,
            toward=verdict.toward or "another role",
        )
    )


def _short(line: str) -> str:
    return line if len(line) < TITLE_LIMIT else line[: TITLE_LIMIT - 2] + "…"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""
