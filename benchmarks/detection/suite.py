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
Label = Literal["failure", "healthy", "hard negative"]


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
        tune: Seeds that thresholds may be chosen on.
        report: Seeds that results are reported on.
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

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds, those for tuning first."""
        return self.tune + self.report


@dataclass(frozen=True, slots=True)
class Suite:
    """All of it.

    Attributes:
        steps: Iterations of a run.
        onset: First iteration with a stress.
        trunks: Name to settings.
        scenarios: In the order in which they are recorded.
    """

    steps: int
    onset: int
    trunks: Mapping[str, Mapping[str, Any]]
    scenarios: tuple[Scenario, ...]

    def config(self, scenario: Scenario | str, seed: int) -> Config:
        """The configuration of a run, of a trunk if only a name is given."""
        if isinstance(scenario, str):
            name, settings = scenario, self.trunks[scenario]
        else:
            name = scenario.name
            settings = merge(self.trunks[scenario.trunk], self._from_onset(scenario.settings))
        return from_mapping(merge(settings, {"name": name, "seed": seed}))

    def _from_onset(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        if "stress" not in settings:
            return settings
        return merge(settings, {"stress": {"start_step": self.onset}})


def load_suite(file: Path = FILE) -> Suite:
    """Read the suite."""
    body = tomllib.loads(file.read_text("utf-8"))
    trunks = {name: merge(body["common"], one) for name, one in body["trunks"].items()}
    scenarios = tuple(
        _scenario(name, one, tune=body["tune"], report=body["report"])
        for name, one in body["scenarios"].items()
    )
    return Suite(body["steps"], body["onset"], trunks, scenarios)


def _scenario(
    name: str, body: Mapping[str, Any], *, tune: list[int], report: list[int]
) -> Scenario:
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
        tune=tuple(body.get("tune", tune)),
        report=tuple(body.get("report", report)),
    )
