"""What is concluded from records: verdicts, alerts, incidents, and their severity."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from roledrift.records import Checkpoint
from roledrift.sums import EVERYONE

State = Literal["ok", "watch", "drift", "no verdict"]
Level = Literal["INFO", "WARN", "ERROR"]
AlertState = Literal["open", "escalated", "closed"]
Severity = Literal["failing", "input problem", "suspicious"]
"""How bad a finding is, worst first. ``failing``: the run is losing, or about to lose, what it has.
``input problem``: what is measured or sampled is not what is trained. ``suspicious``: real and
unexplained, but no damage has been shown."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""All severities, worst first."""

LEVEL_OF: Mapping[Severity, Level] = {
    "failing": "ERROR",
    "input problem": "ERROR",
    "suspicious": "WARN",
}
"""The log level at which a finding of each severity is reported."""

Layer = Literal["setting", "input", "movement", "text", "outcome"]
"""Where in the chain of cause and effect a finding stands; earlier layers cause later ones."""

LAYERS: tuple[Layer, ...] = get_args(Layer)
"""All layers, causes first."""


@dataclass(slots=True, unsafe_hash=True)
class Verdict:
    """What a detector thinks of one role right now.

    Nobody changes one. It is not frozen because a frozen one takes three times as long to make, and
    every detector makes one per role and step.

    Attributes:
        detector: Name of the detector.
        role: Role judged.
        state: ``ok``, ``watch``, ``drift``, or ``no verdict`` when evidence is missing.
        finding: What it found, in the detector's own terms: ``length_inflation``; a detector that
            has only part of its evidence names the lesser finding (``role_drift``).
        statistic: Name of the statistic judged.
        value: Its value.
        threshold: Where ``drift`` begins.
        baseline: Baseline value that ``value`` is judged against.
        onset: First step of the present excursion.
        toward: The other role that it moves toward, where the finding has one.
        reason: One sentence with the numbers, for people.
        needs: What is missing for a verdict.
        evidence: Evidence gathered for the finding, in the units of the detector's decision.
        chance: What that evidence is worth: how much was needed, and how often chance alone gets
            there. Empty if the detector states no rate.
        severity: How bad the finding is; empty unless the state is ``drift``.
        cause: What brought it about, where the detector knows: "the learning rate was raised by a
            factor of 5".
    """

    detector: str
    role: str
    state: State
    finding: str = ""
    statistic: str = ""
    value: float | None = None
    threshold: float | None = None
    baseline: float | None = None
    onset: int | None = None
    toward: str = ""
    reason: str = ""
    needs: tuple[str, ...] = ()
    evidence: float | None = None
    chance: str = ""
    severity: Severity | None = None
    cause: str = ""

    @property
    def applies(self) -> bool:
        """False if the detector is not about this role at all, whatever evidence there were."""
        return not (self.state == "no verdict" and self.reason.startswith("does not apply"))


@dataclass(frozen=True, slots=True)
class TextPair:
    """What a role wrote before the onset of a finding, and what it writes now.

    Attributes:
        prompt: Name of the problem of both texts; empty if they answer different problems.
        before: The older text, clipped; likewise ``after``.
    """

    before_step: int
    after_step: int
    before: str
    after: str
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """A transition of a finding: it opened, escalated or closed.

    The same data gives the same ``id`` live and replayed, so live and offline agree.

    Attributes:
        id: Hash of detector, role and onset.
        step: Step at which the transition happened.
        onset: First bad step.
        stops: True if the user opted in to stop the run on this finding.
        advice: What to do, most effective first, with the host trainer's own configuration.
        evidence: As in :class:`Verdict`; likewise ``chance``.
        pairs: Texts of the role before the onset and now; only in alerts that were raised live.
        checkpoint: The newest checkpoint from before the onset, if the host told of any.
        severity: How bad the finding is; None in runs recorded before severities existed (see
            :attr:`graded`).
        layer: Where the finding stands between cause and effect.
        cause: As in :class:`Verdict`.
    """

    id: str
    detector: str
    finding: str
    role: str
    policy: str
    level: Level
    state: AlertState
    step: int
    onset: int
    title: str
    text: str
    statistic: str = ""
    value: float | None = None
    threshold: float | None = None
    baseline: float | None = None
    advice: tuple[str, ...] = ()
    stops: bool = False
    time: str = ""
    evidence: float | None = None
    chance: str = ""
    pairs: tuple[TextPair, ...] = ()
    checkpoint: Checkpoint | None = None
    severity: Severity | None = None
    layer: Layer | None = None
    cause: str = ""

    @property
    def graded(self) -> Severity:
        """The severity; for alerts recorded before there was one, the one their level implies."""
        if self.severity is not None:
            return self.severity
        return "failing" if self.level == "ERROR" else "suspicious"


@dataclass(frozen=True, slots=True)
class Consequence:
    """A finding that followed the cause of an incident.

    Attributes:
        alert: Id of its alert.
        onset: First bad step; ``step``: when it was reported.
        text: What happened, as a sentence without its full stop.
        state: ``open``, or ``closed`` once it has passed.
    """

    alert: str
    role: str
    finding: str
    severity: Severity
    onset: int
    step: int
    text: str
    state: Literal["open", "closed"] = "open"


@dataclass(frozen=True, slots=True)
class Incident:
    """What a person is told about a run: one cause and what followed from it.

    Computed once, live and in replay alike, and used word for word by every output.

    Attributes:
        id: Id of the alert that opened it; it stays when the run gets sicker.
        step: Step at which this state of the incident was reached.
        state: ``open``, or ``closed`` once all its findings have passed.
        severity: The worst of its findings.
        role: Role of the cause; ``"*"`` for all roles.
        finding: What the cause is called.
        onset: First bad step of the cause.
        reported: Step of the first alert.
        sentence: The incident in one or two sentences; the headline everywhere.
        cause: The setting that changed, if one did; else empty.
        consequences: Further findings, in order of onset.
        damage: What the run has lost so far, in words; empty if nothing yet.
        evidence: The numbers behind the cause, in one sentence.
        advice: The one plan of action, first things first.
        checkpoint: The checkpoint to return to, if the host reported one from before the onset.
        alerts: Ids of its alerts, that of the cause first.
    """

    id: str
    step: int
    state: Literal["open", "closed"]
    severity: Severity
    role: str
    finding: str
    onset: int
    reported: int
    sentence: str
    cause: str = ""
    consequences: tuple[Consequence, ...] = ()
    damage: str = ""
    evidence: str = ""
    advice: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None
    alerts: tuple[str, ...] = ()

    @property
    def outcome(self) -> Severity:
        """What the incident makes of its run: its severity, and after it has closed less.

        A failing incident that closed while the run had lost something is still ``failing``: what
        passed is the symptom, not the loss. Every other closed incident is ``suspicious``.
        """
        if self.state == "open" or (self.severity == "failing" and self.damage):
            return self.severity
        return "suspicious"

    @property
    def rank(self) -> tuple[int, bool, int, bool]:
        """Sort key: the worst outcome, open before closed, the earliest, the more specific."""
        worst = SEVERITIES.index(self.outcome)
        return worst, self.state == "closed", self.onset, self.role == EVERYONE


@dataclass(frozen=True, slots=True)
class Decision:
    """What the host trainer is asked to do after a step.

    Attributes:
        stop: True if a finding that the user opted in to stop on has been raised.
        alerts: Transitions of this step.
        reason: The title of the alert that stops the run; empty otherwise.
    """

    stop: bool = False
    alerts: tuple[Alert, ...] = ()
    reason: str = ""


def alert_id(detector: str, role: str, onset: int) -> str:
    """Make the id of an alert: the same finding with the same onset has the same id everywhere."""
    return hashlib.sha256(f"{detector}|{role}|{onset}".encode()).hexdigest()[:8]
