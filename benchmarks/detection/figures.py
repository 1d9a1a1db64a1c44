"""Everything that is measured, computed once, for the page and the files beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.detection.bootstrap import rates
from benchmarks.detection.evaluation import Runs, tuned_rivals, twin_name
from benchmarks.detection.intervals import Share, mcnemar
from benchmarks.detection.judging import SCALES, Outcome, Scale
from benchmarks.detection.replays import AS_RECORDED, EARLIER, REFERENCED
from benchmarks.detection.variants import VARIANTS

HERE = Path(__file__).parent
SIMULATIONS = HERE / "simulations.json"
CAPTURE = "sp_role_capture"


@dataclass(frozen=True)
class Against:
    """A rival beside ours, on one scale.

    Attributes:
        name: The rival.
        outcomes: Its runs, judged.
        gained: Failures of the dynamics that ours tells and it does not; ``lost``: the reverse.
        p: Exact McNemar p-value.
    """

    name: str
    outcomes: Sequence[Outcome]
    gained: int
    lost: int
    p: float


@dataclass(frozen=True)
class Figures:
    """All results.

    Attributes:
        ours: Runs as recorded, judged.
        variants: The same for every variant of the records.
        measured_by: Runs that are sick from the start, by the yardstick they were judged with.
        rivals: Scale to the rivals.
        standing: Run to what still stood at its end, as (role, finding).
        bootstrap: Rows of lengthened healthy runs.
        simulated: Rows of the simulations.
    """

    ours: Sequence[Outcome]
    variants: Mapping[str, Sequence[Outcome]]
    measured_by: Mapping[str, Sequence[Outcome]]
    rivals: Mapping[Scale, Sequence[Against]]
    standing: Mapping[str, frozenset[tuple[str, str]]]
    bootstrap: Sequence[Mapping[str, Any]]
    simulated: Sequence[Mapping[str, Any]]


def measure(runs: Runs, tune: Runs) -> Figures:
    """Everything about ``runs``; rivals get their thresholds from ``tune``."""
    ours = runs.ours()
    keys = list(runs.replayed)
    names = dict(zip(keys, (outcome.name for outcome in ours), strict=True))
    return Figures(
        ours=ours,
        variants={name: runs.ours(name) for name in VARIANTS if name != AS_RECORDED},
        measured_by={name: _measured_by(runs, name) for name in (REFERENCED, EARLIER)},
        rivals=against(runs, tune, ours),
        standing={names[key]: runs.replayed[key].open for key in keys},
        bootstrap=rates(runs),
        simulated=json.loads(SIMULATIONS.read_text("utf-8")),
    )


def _measured_by(runs: Runs, yardstick: str) -> list[Outcome]:
    return [
        outcome
        for run, outcome in zip(runs.replayed.values(), runs.ours(yardstick), strict=True)
        if yardstick in run.findings and outcome.truth.family == "from the start"
    ]


def against(runs: Runs, tune: Runs, ours: Sequence[Outcome]) -> dict[Scale, list[Against]]:
    """The rivals, tuned on ``tune`` and judged on ``runs``."""
    compared: dict[Scale, list[Against]] = {}
    for scale, rivals in tuned_rivals(tune).items():
        compared[scale] = []
        for tuned in rivals:
            outcomes = runs.rival(tuned)
            pairs = [
                (a.by(scale, None), b.by(scale, None))
                for a, b in zip(ours, outcomes, strict=True)
                if a.truth.family == "dynamics" and a.counts
            ]
            result = mcnemar([a for a, _ in pairs], [b for _, b in pairs])
            compared[scale].append(Against(tuned.rival.name, outcomes, *result))
    return compared


def best(rivals: Sequence[Against], scale: Scale) -> Against:
    """The rival that tells most failures of the dynamics."""
    return max(rivals, key=lambda outcome: detected(outcome.outcomes, scale).hits)


def detected(outcomes: Iterable[Outcome], scale: Scale, horizon: int | None = None) -> Share:
    """Share of the failures of the dynamics told with the right role."""
    return Share.of(
        outcome.by(scale, horizon)
        for outcome in outcomes
        if outcome.truth.family == "dynamics" and outcome.counts
    )


@dataclass(frozen=True)
class Captures:
    """Natural captures of one scenario.

    Attributes:
        lasting: Of those that last: share named ``sp_role_capture`` of the right role.
        any_name: Of those: share in which the right role was told by any name.
        passing: Of those that pass: share told by any name and closed by the end.
        none: Share of the runs without one in which ``sp_role_capture`` is told.
        twins: Likewise of the isolated twins.
    """

    lasting: Share
    any_name: Share
    passing: Share
    none: Share
    twins: Share


def captures(figures: Figures) -> dict[str, Captures]:
    """Natural captures by scenario, those of shared policies; twins are the isolated ones."""
    arms = [
        outcome.scenario.name
        for outcome in figures.ours
        if outcome.truth.family == "capture" and twin_name(outcome.scenario.name) is not None
    ]
    return {arm: _captures(figures, arm) for arm in dict.fromkeys(arms)}


def _captures(figures: Figures, arm: str) -> Captures:
    shared = [outcome for outcome in figures.ours if outcome.scenario.name == arm]
    twins = [outcome for outcome in figures.ours if outcome.scenario.name == twin_name(arm)]
    return Captures(
        lasting=Share.of(_named(outcome) for outcome in shared if outcome.capture == "lasting"),
        any_name=Share.of(
            outcome.by("any", None) for outcome in shared if outcome.capture == "lasting"
        ),
        passing=Share.of(
            outcome.by("any", None) and not _stands(figures, outcome)
            for outcome in shared
            if outcome.capture == "passing"
        ),
        none=Share.of(_named(outcome) for outcome in shared if outcome.capture == "none"),
        twins=Share.of(_named(outcome) for outcome in twins),
    )


def _named(outcome: Outcome) -> bool:
    return any(f": {CAPTURE} (" in name for name in outcome.names)


def _stands(figures: Figures, outcome: Outcome) -> bool:
    return any(name == CAPTURE for _, name in figures.standing.get(outcome.name, ()))


def simulated(figures: Figures, *words: str) -> list[Mapping[str, Any]]:
    """Rows of the simulations whose name contains one of ``words``."""
    return [row for row in figures.simulated if any(word in row["cell"] for word in words)]


def pooled(rows: Iterable[Mapping[str, Any]], field: str) -> Share:
    """All runs of some rows together."""
    shares = [row[field] for row in rows if row.get(field)]
    return Share(sum(share["hits"] for share in shares), sum(share["n"] for share in shares))


def both(share: Mapping[Scale, Share]) -> str:
    """One figure on both scales, in words."""
    return f"{share['serious']}; with suspicious: {share['any']}"


def on_both(measured: Any) -> dict[Scale, Share]:
    """A figure on every scale."""
    return {scale: measured(scale) for scale in SCALES}
