"""What was told about a run, held against what is wrong with it and against its healthy twin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.detection.effects import Effect, Facts, cliff_of, effect, worse
from benchmarks.detection.labels import Truth
from benchmarks.detection.suite import Place, Scenario
from roledrift.judgement import Severity

Scale = Literal["serious", "any"]
"""On which findings count: failing and input problems (``check`` exits 1), or suspicious ones too.
Recall and false alarms are always told on the same scale."""

SCALES: tuple[Scale, ...] = ("serious", "any")
HORIZONS = (3, 5, 8, 12)
"""Steps after the onset by which a failure may have been told."""

SIMILAR = 5
"""An alert earns nothing if the twin raises the same one at most so many steps later."""

LEADABLE = 3
"""Steps that a cliff must come after the onset for anyone to be able to tell it before."""

OUTCOMES = ("accuracy_cliff", "reward_drop")
"""Findings about the fall of accuracy or reward itself: they cannot be ahead of it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One alert, of the detectors or of a rival, as it opened or escalated.

    Attributes:
        step: When it was told.
        role: Whose it is; ``"*"`` for the whole run's.
        name: What it is called.
        severity: How bad it says it is.
        layer: Where it stands between cause and effect, if it says so.
    """

    step: int
    role: str
    name: str
    severity: Severity = "failing"
    layer: str = ""

    @property
    def outcome(self) -> bool:
        """Whether it is about the fall of accuracy or reward itself, not what leads to it."""
        return self.name in OUTCOMES

    def counts(self, scale: Scale) -> bool:
        """Whether it counts on ``scale``."""
        return scale == "any" or self.severity != "suspicious"


@dataclass(frozen=True, slots=True)
class Reported:
    """What was told about a failing run on one scale.

    Attributes:
        first: Step of the first alert about the right role that the twin does not raise too.
        ahead: The same without alerts about accuracy or reward: what can come before the fall.
        named: Whether one about the right role had an acceptable name.
        alerts: Alerts after the onset that the twin does not raise too.
        correct: Those of them that are about the right role, or a consequence true of the run.
    """

    first: int | None = None
    ahead: int | None = None
    named: bool = False
    alerts: int = 0
    correct: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run, judged.

    Attributes:
        scenario: What the run is.
        place: Its base and seed.
        truth: Its label.
        steps: Its length.
        effect: Whether the fault has had an effect; failures only.
        raised: Scale to whether anything at all was told, at any step.
        names: What was told, with severities.
        reported: Scale to what was told after the onset; failures only.
        cliff: Step of the accuracy cliff, None without one.
        twin: Whether the healthy twin is known.
        capture: What became of the texts of a natural run.
    """

    scenario: Scenario
    place: Place
    truth: Truth
    steps: int
    effect: Effect = field(default_factory=lambda: Effect(moved=True, harmed=True))
    raised: Mapping[Scale, bool] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    reported: Mapping[Scale, Reported] = field(default_factory=dict)
    cliff: int | None = None
    twin: bool = False
    capture: str = ""

    @property
    def counts(self) -> bool:
        """Whether a failure did anything; a run in which it did not is no failure."""
        return self.effect.moved or self.effect.harmed

    @property
    def name(self) -> str:
        """The run, for people."""
        base = "" if self.place.base is None else f"b{self.place.base}-"
        return f"{self.scenario.name}-{base}{self.place.seed}"

    @property
    def leadable(self) -> bool:
        """Whether an accuracy cliff follows late enough for anybody to be ahead of it."""
        return self.cliff is not None and self.cliff >= self.truth.onset + LEADABLE

    def delay(self, scale: Scale) -> int | None:
        """Steps from the onset to the first alert about the right role."""
        step = self.reported[scale].first
        return None if step is None else step - self.truth.onset

    def by(self, scale: Scale, horizon: int | None) -> bool:
        """Whether the right role was told within ``horizon`` steps of the onset; None: at all."""
        delay = self.delay(scale)
        return delay is not None and (horizon is None or delay <= horizon)

    def lead(self, scale: Scale) -> float | None:
        """Share of the run between the first alert ahead and the cliff; None without either."""
        ahead = self.reported[scale].ahead
        if ahead is None or self.cliff is None:
            return None
        return (self.cliff - ahead) / self.steps


def judge(
    scenario: Scenario,
    place: Place,
    label: Truth,
    run: Facts,
    findings: Iterable[Finding],
    twin: tuple[Facts, Sequence[Finding]] | None = None,
) -> Outcome:
    """Hold the findings of one run against its label and its healthy twin.

    Args:
        scenario: What the run is.
        place: Its base and seed.
        label: What is wrong with it.
        run: What happened in it.
        findings: Of one method.
        twin: The healthy twin, with the findings of the same method in it.
    """
    ordered = sorted(findings, key=lambda finding: finding.step)
    raised: dict[Scale, bool] = {
        scale: any(finding.counts(scale) for finding in ordered) for scale in SCALES
    }
    names = tuple(f"{finding.severity}: {finding.name} ({finding.role})" for finding in ordered)
    facts = twin[0] if twin else None
    if label.family in ("healthy", "hard negative"):
        harmed = facts is not None and worse(run, facts, label.onset, training=False)
        return Outcome(
            scenario, place, label, run.last, Effect(moved=False, harmed=harmed), raised, names,
            {}, cliff_of(run, label.onset), twin is not None, run.capture,
        )  # fmt: skip
    others = twin[1] if twin else ()
    lasting = run.capture == "lasting"
    shown = (
        Effect(lasting, harmed=False) if label.family == "capture" else effect(label, run, facts)
    )
    return Outcome(
        scenario=scenario,
        place=place,
        truth=label,
        steps=run.last,
        effect=shown,
        raised=raised,
        names=names,
        reported={scale: _reported(scenario, label, ordered, others, scale) for scale in SCALES},
        cliff=cliff_of(run, label.onset),
        twin=twin is not None,
        capture=run.capture,
    )


def credited(
    findings: Iterable[Finding], twin: Sequence[Finding], scale: Scale, onset: int
) -> list[Finding]:
    """Findings from the onset on that the healthy twin does not raise as well.

    The twin raises the same if it has an alert of that role and name on the same scale, at any step
    before or at most :data:`SIMILAR` steps later.
    """
    return [
        finding
        for finding in findings
        if finding.step >= onset
        and finding.counts(scale)
        and not any(
            other.role == finding.role
            and other.name == finding.name
            and other.counts(scale)
            and other.step <= finding.step + SIMILAR
            for other in twin
        )
    ]


def _reported(
    scenario: Scenario,
    label: Truth,
    findings: Sequence[Finding],
    twin: Sequence[Finding],
    scale: Scale,
) -> Reported:
    credits = credited(findings, twin, scale, label.onset)
    in_role = [finding for finding in credits if finding.role in label.roles]
    ahead = [finding for finding in in_role if not finding.outcome]
    consequences = [
        finding
        for finding in credits
        if finding not in in_role and (finding.outcome or finding.name in scenario.also)
    ]
    return Reported(
        first=in_role[0].step if in_role else None,
        ahead=ahead[0].step if ahead else None,
        named=any(finding.name in label.names for finding in in_role),
        alerts=len(credits),
        correct=len(in_role) + len(consequences),
    )
