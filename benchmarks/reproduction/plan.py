"""The plan in ``plan.toml``: experiments, their arms and seeds, and the claims they decide."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal

from reference_trainer.config import Config, from_mapping
from reference_trainer.grid import ROUTINGS, WORKFLOWS
from reference_trainer.reading import merge

PLAN = Path(__file__).with_name("plan.toml")
Depth = Literal["quick", "full"]
Rule = Literal["above", "same", "differs"]


@dataclass(frozen=True, slots=True)
class Base:
    """A warmed-up base model per recipe, and the run seeds that belong to it.

    Attributes:
        warm_up: Seed of the warm-up.
        first: Run seed of the first round; the next rounds follow.
    """

    warm_up: int
    first: int


@dataclass(frozen=True, slots=True)
class Experiment:
    """Runs that differ in one thing.

    Attributes:
        name: Of its file of results too.
        about: What is compared.
        recipe: How the base models are warmed up.
        quick: Rounds that the quick depth makes.
        quick_arms: The arms that it makes; all of them if empty.
        rounds: Rounds that the full depth makes. A round is one seed on every base.
        arms: Arm to its settings, laid over those of the experiment.
        start: Experiment, arm and policy of the run whose final adapter the generator and the
            worker start from; empty for none.
        spare: Base models of the full depth beside the plan's, for those that cannot do the task.
    """

    name: str
    about: str
    recipe: str
    quick: int
    rounds: int
    arms: Mapping[str, Mapping[str, Any]]
    start: Mapping[str, str] = field(default_factory=dict)
    quick_arms: tuple[str, ...] = ()
    spare: tuple[Base, ...] = ()

    def rounds_of(self, depth: Depth) -> int:
        """Rounds that a depth makes."""
        return self.quick if depth == "quick" else self.rounds

    def arms_of(self, depth: Depth) -> list[str]:
        """Arms that a depth makes."""
        chosen = self.quick_arms if depth == "quick" else ()
        return [arm for arm in self.arms if not chosen or arm in chosen]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of a measure; see ``plan.toml`` for the rules.

    Attributes:
        name: What is compared, in words.
        measure: Name in ``measures.MEASURES``.
        over: ``experiment/arm`` patterns.
        under: What they are compared with, place by place; empty: with 0.
        delta: Smallest difference of interest.
        rule: How interval and ``delta`` become an answer.
        kind: ``paired``, or one that has a rule of its own.
        against: For ``auc``: the measure it is compared with.
        decides: Whether it decides the claim.
    """

    name: str
    measure: str
    over: tuple[str, ...]
    under: tuple[str, ...] = ()
    delta: float = 0.0
    rule: Rule = "above"
    kind: Literal["paired", "interaction", "interaction within bases", "auc"] = "paired"
    against: str = ""
    decides: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and the tests that decide it, and those of other explanations.

    Attributes:
        name: Of the claim.
        sentence: What is claimed.
        tests: Its tests.
        needs: Whether all deciding tests must hold, or any.
    """

    name: str
    sentence: str
    tests: tuple[Comparison, ...]
    needs: Literal["all", "any"] = "all"


@dataclass(frozen=True, slots=True)
class Job:
    """One run of the plan."""

    experiment: str
    arm: str
    base: int
    seed: int

    @property
    def name(self) -> str:
        """``capture/sp b3 s300``."""
        return f"{self.experiment}/{self.arm} b{self.base} s{self.seed}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that was decided before the runs.

    Attributes:
        bases: Base models and seeds.
        quick_bases: How many of them the quick depth uses.
        experiments: In the order in which they are run.
        claims: In the order of the page.
        tables: The parts of ``plan.toml`` that settings are made from.
    """

    bases: tuple[Base, ...]
    quick_bases: int
    experiments: tuple[Experiment, ...]
    claims: tuple[Claim, ...]
    tables: Mapping[str, Any]

    def experiment(self, name: str) -> Experiment:
        """The experiment of that name."""
        return next(experiment for experiment in self.experiments if experiment.name == name)

    def config(self, job: Job) -> Config:
        """The configuration of a run; what it starts from is added by the runner."""
        return from_mapping(self.settings(job))

    def settings(self, job: Job) -> dict[str, Any]:
        """What the plan sets of a run; everything else is at the trainer's defaults."""
        experiment = self.experiment(job.experiment)
        tables = self.tables
        values: dict[str, Any] = merge(tables["common"], tables["recipes"][experiment.recipe])
        values = merge(values, tables["experiments"][experiment.name].get("set", {}))
        values = merge(values, experiment.arms[job.arm])
        values = merge(values, {"pretrain": {"seed": job.base}})
        return merge(values, {"name": job.name, "seed": job.seed})

    def hash(self, job: Job) -> str:
        """Twelve digits that change if and only if the plan changes a setting of the run."""
        text = json.dumps(self.settings(job), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def jobs(
        self, depth: Depth, *, only: Sequence[str] = (), rounds: int | None = None
    ) -> list[Job]:
        """All runs of a depth, a round of every experiment before the next one.

        Args:
            depth: How many rounds.
            only: Patterns of ``experiment`` or ``experiment/arm``; empty for all.
            rounds: The first so many alone.
        """
        bases = self.bases[: self.quick_bases] if depth == "quick" else self.bases
        last = max(experiment.rounds_of(depth) for experiment in self.experiments)
        return [
            Job(experiment.name, arm, base.warm_up, base.first + number)
            for number in range(last if rounds is None else rounds)
            for experiment in self.experiments
            if number < experiment.rounds_of(depth)
            for base in (*bases, *(experiment.spare if depth == "full" else ()))
            for arm in experiment.arms_of(depth)
            if not only or _chosen(f"{experiment.name}/{arm}", only)
        ]


def _chosen(place: str, patterns: Sequence[str]) -> bool:
    experiment = place.partition("/")[0]
    return any(
        fnmatchcase(experiment, pattern) or fnmatchcase(place, pattern) for pattern in patterns
    )


@cache
def load_plan(path: Path = PLAN) -> Plan:
    """Read the plan."""
    tables = tomllib.loads(path.read_text("utf-8"))
    return Plan(
        bases=tuple(Base(*pair) for pair in tables["bases"]),
        quick_bases=tables["quick_bases"],
        experiments=tuple(
            _experiment(name, table) for name, table in tables["experiments"].items()
        ),
        claims=tuple(
            Claim(
                name=name,
                sentence=table["paper"],
                tests=tuple(comparison(test) for test in table["tests"]),
                needs=table.get("needs", "all"),
            )
            for name, table in tables["claims"].items()
        ),
        tables=tables,
    )


def _experiment(name: str, table: Mapping[str, Any]) -> Experiment:
    arms = table.get("arms") or _cells()
    return Experiment(
        name=name,
        about=table["about"],
        recipe=table["recipe"],
        quick=table["quick"],
        rounds=table["rounds"],
        arms=arms,
        start=table.get("from", {}),
        quick_arms=tuple(table.get("quick_arms", ())),
        spare=tuple(Base(*pair) for pair in table.get("spare_bases", ())),
    )


def _cells() -> dict[str, dict[str, Any]]:
    """The seven cells of one task and scale."""
    cells = {
        f"{workflow}-{routing}": {"workflow": workflow, "routing": ROUTINGS[routing]}
        for workflow in WORKFLOWS
        for routing in ROUTINGS
    }
    return {"single-sa": {"workflow": "single", "routing": "shared"}, **cells}


def comparison(table: Mapping[str, Any]) -> Comparison:
    """A test from its table."""
    lists = {key: tuple(table[key]) for key in ("over", "under") if key in table}
    return Comparison(**{**table, **lists})
