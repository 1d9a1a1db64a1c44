"""The suite as data: ``suite.toml``, checked."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from reference_trainer.config import Config, from_mapping
from reference_trainer.reading import merge

FILE = Path(__file__).parent / "suite.toml"
Label = Literal["failure", "healthy", "hard negative", "natural"]
Kind = Literal["", "dynamics", "input"]
Use = Literal["tune", "report"]

FIRST_REPORTED = 30
"""Seeds of named bases below it may be tuned on; results are reported on the others."""


@dataclass(frozen=True, slots=True)
class Place:
    """One run of a scenario.

    Attributes:
        base: Seed of the base model's warm-up; None for the base of the earlier recordings, whose
            warm-up took a fixed number of steps.
        seed: Of the run.
    """

    base: int | None
    seed: int

    @property
    def use(self) -> Use:
        """Whether thresholds may be chosen on it, or results are reported on it."""
        return "tune" if self.base is None or self.seed < FIRST_REPORTED else "report"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of run.

    Attributes:
        name: Its name in ``suite.toml``.
        trunk: The run that it takes up.
        label: What it is.
        about: One line for people.
        roles: Whose failure it is; empty: the whole run's.
        names: What a finding about such a role may be called.
        also: Names that are right about any role.
        effect: Statistic, and how many times its baseline it must reach in the end, for a run to
            have failed; None if the failure is there by construction.
        settings: What changes at the onset; empty for the trunk itself.
        tune: Seeds of the earlier recordings that thresholds were chosen on at their time.
        report: Seeds of the earlier recordings that results were reported on at their time.
        kind: What sort of failure it is; empty for what is none.
        from_start: The settings hold from the first iteration, not from the onset.
        earlier: The earlier recordings, all of them for tuning by now.
        rounds: The other runs, those to be recorded first in the first round.
    """

    name: str
    trunk: str
    label: Label
    about: str
    roles: tuple[str, ...]
    names: tuple[str, ...]
    also: tuple[str, ...]
    effect: tuple[str, float] | None
    settings: Mapping[str, Any]
    tune: tuple[int, ...]
    report: tuple[int, ...]
    kind: Kind = ""
    from_start: bool = False
    earlier: tuple[Place, ...] = ()
    rounds: tuple[tuple[Place, ...], ...] = ()

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds of the earlier recordings, those for tuning first."""
        return self.tune + self.report

    def places(self, use: Use | None = None) -> tuple[Place, ...]:
        """All runs, or those for one use."""
        planned = (place for stage in self.rounds for place in stage)
        return tuple(stage for stage in (*self.earlier, *planned) if use in (None, stage.use))


@dataclass(frozen=True, slots=True)
class Suite:
    """All of it.

    Attributes:
        steps: Iterations of a run.
        onset: First iteration with a stress.
        trunks: Name to settings.
        scenarios: In the order in which they are recorded.
        until: When the warm-up of a named base ends.
    """

    steps: int
    onset: int
    trunks: Mapping[str, Mapping[str, Any]]
    scenarios: tuple[Scenario, ...]
    until: Mapping[str, Any]

    def config(self, scenario: Scenario | str, seed: int, base: int | None = None) -> Config:
        """The configuration of a run, of a trunk if only a name is given."""
        if isinstance(scenario, str):
            name, settings = scenario, self.trunks[scenario]
        else:
            name = scenario.name
            settings = merge(self.trunks[scenario.trunk], self._from_onset(scenario))
        if base is not None:
            named = {"pretrain": {"until": self.until, "seed": base}}
            settings = merge(named, merge(settings, {"pretrain": {"seed": base}}))
        return from_mapping(merge(settings, {"name": name, "seed": seed}))

    def _from_onset(self, scenario: Scenario) -> Mapping[str, Any]:
        settings = scenario.settings
        if "stress" not in settings or scenario.from_start:
            return settings
        return merge(settings, {"stress": {"start_step": self.onset}})


def load_suite(file: Path = FILE) -> Suite:
    """Read the suite."""
    body = tomllib.loads(file.read_text("utf-8"))
    trunks = {name: merge(body["common"], value) for name, value in body["trunks"].items()}
    scenarios = tuple(_scenario(name, value, body) for name, value in body["scenarios"].items())
    return Suite(body["steps"], body["onset"], trunks, scenarios, body["until"])


def _scenario(name: str, body: Mapping[str, Any], suite: Mapping[str, Any]) -> Scenario:
    usual = "failure" if body["label"] == "failure" else "healthy"
    rounds = suite["plans"][body.get("plan", usual)]
    return Scenario(
        name=name,
        trunk=body["trunk"],
        label=body["label"],
        about=body["about"],
        roles=tuple(body.get("roles", ())),
        names=tuple(body.get("names", ())),
        also=tuple(body.get("also", ())),
        effect=(effect["statistic"], effect["ratio"]) if (effect := body.get("effect")) else None,
        settings=body.get("set", {}),
        tune=tuple(suite["tune"]),
        report=tuple(suite["report"]),
        kind=body.get("kind", ""),
        from_start=body.get("from_start", False),
        earlier=tuple(Place(None, seed) for seed in suite["earlier"]),
        rounds=tuple(tuple(Place(base, seed) for base, seed in stage) for stage in rounds),
    )
