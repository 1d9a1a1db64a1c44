"""What was found in a run, held against what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from benchmarks.detection.recordings import Recording
from benchmarks.detection.suite import Scenario

_ERRORS = 3.0
"""Standard errors that a fall of the validation accuracy must exceed."""

_LEAST_FALL = 0.1
"""And so much in any case."""

_LAST = 5
"""Steps in a row that show whether a stress has had an effect."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One alert, of the panel or of a rival.

    Attributes:
        step: When it was told.
        role: Whose it is; ``"*"`` for the whole run's.
        name: What it is called.
        level: How sure.
    """

    step: int
    role: str
    name: str
    level: Literal["WARN", "ERROR"] = "ERROR"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run, judged.

    Attributes:
        scenario: What the run is.
        seed: Of the run.
        effect: False if the stress has had no effect: then the run counts neither way.
        errors: Findings of level ERROR that are false: any in a run in which nothing is wrong,
            any before the onset otherwise.
        warnings: Likewise of level WARN.
        found: Whether anything was told from the onset on (failures only).
        role: Whether something was told about a role whose failure it is.
        name: Whether that had an acceptable name.
        told: Findings from the onset on.
        told_role: Those about the right role, or of a name that is right about any role.
        told_name: Those of them whose name is right.
        delay: Steps from the onset to the first finding about the right role, None without one.
        cliff: Step of the accuracy cliff, None without one.
        lead: Steps from that finding to the cliff, None without either.
    """

    scenario: Scenario
    seed: int
    errors: int
    warnings: int
    effect: bool = True
    found: bool = False
    role: bool = False
    name: bool = False
    told: int = 0
    told_role: int = 0
    told_name: int = 0
    delay: int | None = None
    cliff: int | None = None
    lead: int | None = None


def cliff_of(recording: Recording, onset: int) -> int | None:
    """First validation from ``onset`` on that has fallen off the best one before it.

    A fall is more than three standard errors of the difference, and at least a tenth. The next
    validation must have fallen as well; the last one, which has none, must have fallen twice as
    far.
    """
    steps = sorted(recording.validation)
    values = [recording.validation[step] for step in steps]
    for i, step in enumerate(steps[1:], start=1):
        best = max(values[:i])
        falls = [_fall(best, value, recording.problems) for value in values[i : i + 2]]
        if step >= onset and min(falls) > (1 if len(falls) == 2 else 2):
            return step
    return None


def _fall(best: float, value: float, n: int) -> float:
    """How many times the smallest fall that counts ``value`` is below ``best``."""
    error = math.sqrt((best * (1 - best) + value * (1 - value)) / n)
    return (best - value) / max(_ERRORS * error, _LEAST_FALL)


def took_effect(scenario: Scenario, recording: Recording, onset: int) -> bool:
    """Whether the statistic that shows the failure has left its baseline, whoever noticed.

    The baseline is the median over the steps before the onset, without the first three; the
    effect is the largest median of five steps in a row after it.
    """
    if scenario.effect is None:
        return True
    statistic, ratio = scenario.effect
    values = [
        (one.step, value)
        for one in recording.steps
        if (value := one.mean(scenario.roles[0], statistic)) is not None
    ]
    before = median(value for step, value in values if 3 < step < onset)
    after = [value for step, value in values if step >= onset]
    most = max(median(after[i : i + _LAST]) for i in range(max(len(after) - _LAST + 1, 1)))
    return most >= ratio * before


def judge(
    scenario: Scenario, recording: Recording, findings: Iterable[Finding], *, onset: int
) -> Outcome:
    """Hold the findings of one run against its label."""
    findings = sorted(findings, key=lambda one: one.step)
    failure = scenario.label == "failure"
    false = [one for one in findings if not failure or one.step < onset]
    counts = {level: sum(one.level == level for one in false) for level in ("ERROR", "WARN")}
    if not failure:
        return Outcome(scenario, recording.seed, counts["ERROR"], counts["WARN"])
    told = [one for one in findings if one.step >= onset]
    at_role = [one for one in told if not scenario.roles or one.role in scenario.roles]
    named = [one for one in at_role if one.name in (*scenario.names, *scenario.also)]
    consequences = [one for one in told if one.name in scenario.also and one not in at_role]
    first = at_role[0].step if at_role else None
    cliff = cliff_of(recording, onset)
    return Outcome(
        scenario=scenario,
        seed=recording.seed,
        errors=counts["ERROR"],
        warnings=counts["WARN"],
        effect=took_effect(scenario, recording, onset),
        found=bool(told),
        role=bool(at_role),
        name=any(one.name in scenario.names for one in at_role),
        told=len(told),
        told_role=len(at_role) + len(consequences),
        told_name=len(named) + len(consequences),
        delay=None if first is None else first - onset,
        cliff=cliff,
        lead=None if first is None or cliff is None else cliff - first,
    )


@dataclass(frozen=True, slots=True)
class Score:
    """All runs of one method together. Shares are None where nothing is there to be a share of.

    Attributes:
        failures: Runs with a failure.
        idle: Runs whose stress has had no effect; they are in none of the other figures.
        recall: Share in which anything was told.
        recall_role: Share in which something was told about the right role.
        recall_name: Share in which that had the right name.
        precision_role: Share of what was told in them that is about the right role.
        precision_name: Share of what was told in them that has the right name too.
        healthy: Runs in which nothing is wrong, without the hard negatives.
        errors: False ERRORs per such run.
        warnings: False WARNs per such run.
        clean: Share of them without a false ERROR.
        hard: Hard negatives.
        hard_clean: Share of them without a false ERROR.
        early_errors: False ERRORs before the onset of a failure, per failing run.
        delay: Median steps from the onset to the right role.
        cliffs: Failures in which an accuracy cliff follows.
        led: Share of them with a finding about the right role before the cliff.
        lead: Median lead before the cliff as a share of the run; a run without a finding counts as
            minus infinity.
    """

    failures: int
    idle: int
    recall: float | None
    recall_role: float | None
    recall_name: float | None
    precision_role: float | None
    precision_name: float | None
    healthy: int
    errors: float | None
    warnings: float | None
    clean: float | None
    hard: int
    hard_clean: float | None
    early_errors: float | None
    delay: float | None
    cliffs: int
    led: float | None
    lead: float | None


def score(outcomes: Sequence[Outcome], *, steps: int) -> Score:
    """Sum up runs of ``steps`` iterations each."""
    bad = [one for one in outcomes if one.scenario.label == "failure" and one.effect]
    good = [one for one in outcomes if one.scenario.label == "healthy"]
    hard = [one for one in outcomes if one.scenario.label == "hard negative"]
    falls = [one for one in bad if one.cliff is not None]
    told = sum(one.told for one in bad)
    delays = [one.delay for one in bad if one.delay is not None]
    leads = [-math.inf if one.lead is None else one.lead / steps for one in falls]
    return Score(
        failures=len(bad),
        idle=sum(not one.effect for one in outcomes),
        recall=_mean(one.found for one in bad),
        recall_role=_mean(one.role for one in bad),
        recall_name=_mean(one.name for one in bad),
        precision_role=sum(one.told_role for one in bad) / told if told else None,
        precision_name=sum(one.told_name for one in bad) / told if told else None,
        healthy=len(good),
        errors=_mean(one.errors for one in good),
        warnings=_mean(one.warnings for one in good),
        clean=_mean(not one.errors for one in good),
        hard=len(hard),
        hard_clean=_mean(not one.errors for one in hard),
        early_errors=_mean(one.errors for one in bad),
        delay=median(delays) if delays else None,
        cliffs=len(falls),
        led=_mean(one.lead is not None and one.lead > 0 for one in falls),
        lead=median(leads) if leads else None,
    )


def by_scenario(outcomes: Sequence[Outcome]) -> Mapping[str, list[Outcome]]:
    """Outcomes under the name of their scenario, in the order given."""
    groups: dict[str, list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault(one.scenario.name, []).append(one)
    return groups


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return sum(known) / len(known) if known else None
