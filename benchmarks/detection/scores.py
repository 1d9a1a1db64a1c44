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
    injected = [one for one in outcomes if one.truth.family == family]
    failed = [one for one in injected if one.counts]
    told = [one.told[scale] for one in failed]
    delays = [delay for one in failed if (delay := one.delay(scale)) is not None]
    by = {f"+{steps}": Share.of(one.by(scale, steps) for one in failed) for steps in HORIZONS}
    return Recall(
        injected=len(injected),
        by=by | {"end": Share.of(one.by(scale, None) for one in failed)},
        anyway=Share.of(one.by(scale, None) for one in injected),
        named=Share.of(one.named for one in told),
        precision=Share(sum(one.right for one in told), sum(one.alerts for one in told)),
        delay=Median.of(delays),
    )


def cliffs(outcomes: Sequence[Outcome], scale: Scale, family: Family | None = None) -> Cliffs:
    """Of all failures that end in one, or of one family."""
    fell = [
        one
        for one in outcomes
        if one.told and one.cliff is not None and family in (None, one.truth.family)
    ]
    can = [one for one in fell if one.leadable]
    leads = [-math.inf if (lead := one.lead(scale)) is None else lead for one in can]
    return Cliffs(len(fell), Share.of(lead > 0 for lead in leads), Median.of(leads))


def alarms(outcomes: Sequence[Outcome], scale: Scale) -> Alarms:
    """In runs in which nothing is wrong."""
    hard = [one for one in outcomes if one.truth.family == "hard negative"]
    harmful = [one for one in hard if one.effect.harmed]
    return Alarms(
        healthy=Share.of(one.raised[scale] for one in healthy(outcomes)),
        hard=Share.of(one.raised[scale] for one in hard if one not in harmful),
        harmful=len(harmful),
    )


def healthy(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Runs in which nothing is wrong, hard negatives left out."""
    return [one for one in outcomes if one.truth.family == "healthy"]


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
        return {key: plain(one) for key, one in value.items()}
    return value
