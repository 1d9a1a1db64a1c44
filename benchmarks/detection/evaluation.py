"""All recorded runs of some seeds, replayed and judged: ours in every variant, and the rivals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.detection.effects import Facts
from benchmarks.detection.judging import SCALES, Finding, Outcome, Scale, judge
from benchmarks.detection.labels import Truth, truth
from benchmarks.detection.recordings import exists
from benchmarks.detection.replays import Job, Replayed, replay_all
from benchmarks.detection.rivals import RIVALS, Tuned
from benchmarks.detection.scores import alarms, healthy
from benchmarks.detection.suite import Scenario, Suite
from benchmarks.detection.variants import VARIANTS

Seeds = Literal["tune", "report"]

LOOKED_AT = (0, 1, 10, 11, 12)
"""Seeds of the first benchmark: what the detectors were built on, so development data for good."""

RESERVED = 9000
"""Seeds from here on belong to acceptance and are never touched."""

Key = tuple[str, int]


@dataclass(frozen=True)
class Runs:
    """Recorded runs with what the detectors said.

    Attributes:
        suite: The suite.
        scenarios: Run to its scenario.
        replayed: Run to what came of it.
        truths: Run to its label.
    """

    suite: Suite
    scenarios: Mapping[Key, Scenario]
    replayed: Mapping[Key, Replayed]
    truths: Mapping[Key, Truth]

    def outcomes(self, told: Callable[[Key], Sequence[Finding]]) -> list[Outcome]:
        """Every run, judged by what ``told`` says about it."""
        return [
            judge(
                self.scenarios[key],
                key[1],
                self.truths[key],
                self.replayed[key].facts,
                told(key),
                self._twin(key, told),
            )
            for key in self.replayed
        ]

    def ours(self, variant: str = "as recorded") -> list[Outcome]:
        """What our detectors told of one variant."""
        return self.outcomes(lambda key: self.replayed[key].findings.get(variant, ()))

    def rival(self, tuned: Tuned) -> list[Outcome]:
        """What a tuned rule told."""
        found = {key: tuned.findings(run.facts) for key, run in self.replayed.items()}
        return self.outcomes(lambda key: found[key])

    def healthy(self) -> list[Facts]:
        """Runs in which nothing is wrong."""
        return [
            run.facts for key, run in self.replayed.items() if self.truths[key].family == "healthy"
        ]

    def _twin(
        self, key: Key, told: Callable[[Key], Sequence[Finding]]
    ) -> tuple[Facts, Sequence[Finding]] | None:
        name = twin_of(self.suite, self.scenarios[key])
        twin = (name, key[1])
        if name is None or twin == key or twin not in self.replayed:
            return None
        return self.replayed[twin].facts, told(twin)


def twin_of(suite: Suite, scenario: Scenario) -> str | None:
    """The healthy scenario that is the same run without its fault; None without one."""
    named = getattr(scenario, "twin", "")
    if named:
        return str(named)
    same = [
        other.name
        for other in suite.scenarios
        if other.trunk == scenario.trunk and other.label == "healthy" and not other.settings
    ]
    return same[0] if same else None


def keys_of(suite: Suite, seeds: Seeds) -> list[tuple[Scenario, int]]:
    """The recorded runs for building, or those for reporting."""
    wanted = []
    for scenario in suite.scenarios:
        known = dict.fromkeys((*scenario.tune, *scenario.report))
        looked = {*scenario.tune, *LOOKED_AT}
        for seed in known:
            if seed >= RESERVED or not exists(scenario.name, seed):
                continue
            if (seed in looked) == (seeds == "tune"):
                wanted.append((scenario, seed))
    return wanted


def run_all(
    suite: Suite, seeds: Seeds, *, variants: Sequence[str] = ("as recorded",), processes: int = 2
) -> Runs:
    """Replay the recorded runs of some seeds.

    Args:
        suite: The suite.
        seeds: Which runs.
        variants: Names of variants; those that shift the engine are for healthy runs alone.
        processes: Side by side.
    """
    wanted = keys_of(suite, seeds)
    jobs = [
        Job(
            scenario.name,
            seed,
            tuple(name for name in variants if name in VARIANTS and _fits(name, scenario)),
            _reference(suite, scenario, seed, wanted),
        )
        for scenario, seed in wanted
    ]
    results = replay_all(jobs, processes)
    scenarios = {(scenario.name, seed): scenario for scenario, seed in wanted}
    replayed = dict(zip(scenarios, results, strict=True))
    truths = {
        key: truth(suite, scenario, replayed[key].workflow) for key, scenario in scenarios.items()
    }
    return Runs(suite, scenarios, replayed, truths)


def tuned_rivals(tune: Runs) -> dict[Scale, list[Tuned]]:
    """Every rival at our rate of false alarms on the runs for tuning, on either scale."""
    ours = tune.ours()
    facts = tune.healthy()
    tuned: dict[Scale, list[Tuned]] = {}
    for scale in SCALES:
        allowed = alarms(ours, scale).healthy.value or 0.0
        tuned[scale] = [rival.tuned(facts, allowed) for rival in RIVALS]
    return tuned


def _fits(variant: str, scenario: Scenario) -> bool:
    return not variant.startswith("engine") or scenario.label == "healthy"


def _reference(
    suite: Suite, scenario: Scenario, seed: int, wanted: Sequence[tuple[Scenario, int]]
) -> Key | None:
    """For a run that is sick from the start: a healthy run of another seed, as one has it."""
    if int(getattr(scenario, "onset", 0) or suite.onset) != 1 or scenario.label != "failure":
        return None
    name = twin_of(suite, scenario)
    others = [other for one, other in wanted if one.name == name and other != seed]
    return (name, others[0]) if name is not None and others else None


def count_healthy(outcomes: Sequence[Outcome]) -> int:
    """Number of healthy runs."""
    return len(healthy(outcomes))
