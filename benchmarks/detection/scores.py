"""Sums over judged runs: every figure with its interval and the number of runs behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.detection.intervals import Median, Share
from benchmarks.detection.judging import HORIZONS, Outcome, Scale
from benchmarks.detection.labels import Family


@dataclass(frozen=True, slots=True)
class Recall:
    """How one kind of failure is found, on one scale.

    Attributes:
        injected: Runs with the fault, whether or not it had an effect.
        by: Steps after the onset to the share told by then; ``end`` for the whole run.
        anyway: Share told by the end among all runs with the fault, also those without effect.
        named: Share with an acceptable name.
        precision: Share of the alerts told that are right.
        delay: Steps from the onset to the right role, where it is told.
    """

    injected: int
    by: Mapping[str, Share]
    anyway: Share
    named: Share
    precision: Share
    delay: Median


@dataclass(frozen=True, slots=True)
class Cliffs:
    """What comes before an accuracy cliff.

    Attributes:
        all: Failing runs with a cliff.
        led: Of those that can be led: share with an alert about the right role before the fall,
            alerts about accuracy and reward left out.
        lead: Median lead as a share of the run; a run without such an alert counts as none.
    """

    all: int
    led: Share
    lead: Median


@dataclass(frozen=True, slots=True)
class Alarms:
    """What is told where nothing is wrong, on one scale.

    Attributes:
        healthy: Share of the healthy runs in which anything is told.
        hard: Share of the hard negatives in which anything is told.
        harmful: Hard negatives that are left out because they ended worse than their twins.
    """

    healthy: Share
    hard: Share
    harmful: int


def recall(outcomes: Sequence[Outcome], family: Family, scale: Scale) -> Recall:
    """Of one family of failures."""
    injected = [outcome for outcome in outcomes if outcome.truth.family == family]
    failed = [outcome for outcome in injected if outcome.counts]
    credits = [outcome.reported[scale] for outcome in failed]
    delays = [delay for outcome in failed if (delay := outcome.delay(scale)) is not None]
    by = {
        f"+{steps}": Share.of(outcome.by(scale, steps) for outcome in failed) for steps in HORIZONS
    }
    return Recall(
        injected=len(injected),
        by=by | {"end": Share.of(outcome.by(scale, None) for outcome in failed)},
        anyway=Share.of(outcome.by(scale, None) for outcome in injected),
        named=Share.of(credit.named for credit in credits),
        precision=Share(
            sum(credit.correct for credit in credits), sum(credit.alerts for credit in credits)
        ),
        delay=Median.of(delays),
    )


def cliffs(outcomes: Sequence[Outcome], scale: Scale) -> Cliffs:
    """Of all failures that end in one."""
    fell = [outcome for outcome in outcomes if outcome.reported and outcome.cliff is not None]
    can = [outcome for outcome in fell if outcome.leadable]
    leads = [-math.inf if (lead := outcome.lead(scale)) is None else lead for outcome in can]
    return Cliffs(len(fell), Share.of(lead > 0 for lead in leads), Median.of(leads))


def alarms(outcomes: Sequence[Outcome], scale: Scale) -> Alarms:
    """In runs in which nothing is wrong."""
    hard = [outcome for outcome in outcomes if outcome.truth.family == "hard negative"]
    harmful = [outcome for outcome in hard if outcome.effect.harmed]
    return Alarms(
        healthy=Share.of(outcome.raised[scale] for outcome in healthy(outcomes)),
        hard=Share.of(outcome.raised[scale] for outcome in hard if outcome not in harmful),
        harmful=len(harmful),
    )


def healthy(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Runs in which nothing is wrong, hard negatives left out."""
    return [outcome for outcome in outcomes if outcome.truth.family == "healthy"]


def by_scenario(outcomes: Iterable[Outcome]) -> Mapping[str, list[Outcome]]:
    """Outcomes under the name of their scenario, in the order given."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.scenario.name, []).append(outcome)
    return groups


def plain(value: Any) -> Any:
    """Figures, JSON-ready."""
    if isinstance(value, Share | Median):
        return value.plain()
    if isinstance(value, Recall | Cliffs | Alarms):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {key: plain(value) for key, value in value.items()}
    return value
