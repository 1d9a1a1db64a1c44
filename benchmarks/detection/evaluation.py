"""All recorded runs of some seeds, replayed and judged: ours in every variant, and the rivals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.detection.effects import Facts
from benchmarks.detection.judging import SCALES, Finding, Outcome, Scale, judge
from benchmarks.detection.labels import Truth, truth
from benchmarks.detection.recordings import exists
from benchmarks.detection.replays import AS_RECORDED, Job, Replayed, replay_all
from benchmarks.detection.rivals import RIVALS, Tuned
from benchmarks.detection.scores import alarms
from benchmarks.detection.suite import Place, Scenario, Suite, Use

Key = tuple[str, Place]

RESERVED = 9000
"""Seeds from here on belong to acceptance and are never touched."""

_MOST_EARLIER = 5


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

    def outcomes(self, findings_of: Callable[[Key], Sequence[Finding]]) -> list[Outcome]:
        """Every run, judged by what ``told`` says about it."""
        return [
            judge(
                self.scenarios[key],
                key[1],
                self.truths[key],
                self.replayed[key].facts,
                findings_of(key),
                self._twin(key, findings_of),
            )
            for key in self.replayed
        ]

    def ours(self, variant: str = AS_RECORDED) -> list[Outcome]:
        """What our detectors told of one variant."""
        return self.outcomes(lambda key: self.replayed[key].findings.get(variant, ()))

    def rival(self, tuned: Tuned) -> list[Outcome]:
        """What a tuned rule told."""
        findings = {key: tuned.findings(run.facts) for key, run in self.replayed.items()}
        return self.outcomes(lambda key: findings[key])

    def healthy(self) -> list[Facts]:
        """Runs in which nothing is wrong."""
        return [
            run.facts for key, run in self.replayed.items() if self.truths[key].family == "healthy"
        ]

    def _twin(
        self, key: Key, findings_of: Callable[[Key], Sequence[Finding]]
    ) -> tuple[Facts, Sequence[Finding]] | None:
        name = twin_of(self.suite, self.scenarios[key])
        twin = (name, key[1])
        if name is None or twin == key or twin not in self.replayed:
            return None
        return self.replayed[twin].facts, findings_of(twin)


def twin_of(suite: Suite, scenario: Scenario) -> str | None:
    """The healthy scenario that is the same run without its fault; None without one."""
    if scenario.label == "natural":
        return twin_name(scenario.name)
    same = [
        other.name
        for other in suite.scenarios
        if other.trunk == scenario.trunk and other.label == "healthy" and not other.settings
    ]
    return same[0] if same else None


def twin_name(name: str) -> str | None:
    """A natural run's twin is the same with one policy per role; that has none itself."""
    return name.replace("-sp", "-ip") if "-sp" in name else None


def keys_of(suite: Suite, use: Use) -> list[tuple[Scenario, Place]]:
    """The recorded runs for building, or those for reporting."""
    return [
        (scenario, place)
        for scenario in suite.scenarios
        for place in dict.fromkeys(scenario.places(use))
        if place.seed < RESERVED and exists(scenario.name, place.seed, base=place.base)
    ]


def run_all(
    suite: Suite, use: Use, *, variants: Sequence[str] = (AS_RECORDED,), processes: int = 2
) -> Runs:
    """Replay the recorded runs for one use.

    Args:
        suite: The suite.
        use: Which runs.
        variants: Names of variants; those that shift the engine are for healthy runs alone.
        processes: Side by side.
    """
    wanted = keys_of(suite, use)
    jobs = [
        Job(
            scenario.name,
            place,
            tuple(name for name in variants if _fits(name, scenario)),
            _reference(suite, scenario, place, wanted),
            _earlier(suite, scenario, place),
        )
        for scenario, place in wanted
    ]
    results = replay_all(jobs, processes)
    scenarios = {(scenario.name, place): scenario for scenario, place in wanted}
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


def _yardstick(suite: Suite, scenario: Scenario) -> str | None:
    """The healthy scenario that is a yardstick of runs sick from the start, and of their twins."""
    sick = {
        twin_of(suite, scenario)
        for scenario in suite.scenarios
        if scenario.from_start and scenario.label == "failure"
    }
    from_start = scenario.from_start and scenario.label == "failure"
    name = twin_of(suite, scenario)
    wanted = from_start or (scenario.name in sick and not scenario.settings)
    return name if wanted else None


def _reference(
    suite: Suite, scenario: Scenario, place: Place, wanted: Sequence[tuple[Scenario, Place]]
) -> Key | None:
    """A healthy run of the same base and another seed."""
    name = _yardstick(suite, scenario)
    others = [
        other
        for first, other in wanted
        if first.name == name and other.base == place.base and other.seed != place.seed
    ]
    return (name, others[0]) if name is not None and others else None


def _earlier(suite: Suite, scenario: Scenario, place: Place) -> tuple[Key, ...]:
    """Healthy runs of other seeds on all bases, as a folder of a project would hold."""
    name = _yardstick(suite, scenario)
    if name is None or place.base is None:
        return ()
    places = next(scenario for scenario in suite.scenarios if scenario.name == name).places()
    others = [
        (name, other)
        for other in dict.fromkeys(places)
        if other.base is not None
        and other.seed != place.seed
        and other.seed < RESERVED
        and exists(name, other.seed, base=other.base)
    ]
    return tuple(others[:_MOST_EARLIER])
