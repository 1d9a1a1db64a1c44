"""What a simulated run is: roles, sizes, and the courses that its statistics follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.detection.simulations.noise import Array, Noise
from roledrift import Workflow

WORKED: Mapping[str, float] = {"boxed": 0.98, "terse": 0.1, "hedging": 0.02}
STAMP: Mapping[str, float] = {"boxed": 1.0, "terse": 0.99, "bare_stamp": 0.97}
VERDICT: Mapping[str, float] = {"boxed": 0.99, "terse": 0.95, "verdict_tag": 0.97}
"""Shares of texts of each shape: of a role that works, one that selects, one that judges."""


@dataclass(frozen=True)
class RolePlan:
    """One role.

    Attributes:
        length: Tokens of an answer at the start.
        k3: How far an optimizer step moves it at the start, nats per token.
        shapes: Shares of text shapes at the start.
        updates: Optimizer steps per iteration.
        longer: Course of the length, as a factor.
        moved: Course of the movement, as a factor.
        prose: Course from 0 (writes as at the start) to 1 (writes like a role that works).
        paid: Course of what the role's rewards are above the outcome.
        truncated: Course of the share of truncated answers.
    """

    length: float = 17.0
    k3: float = 3e-4
    shapes: Mapping[str, float] = field(default_factory=lambda: WORKED)
    updates: int = 1
    longer: Array | None = None
    moved: Array | None = None
    prose: Array | None = None
    paid: Array | None = None
    truncated: Array | None = None


@dataclass(frozen=True)
class RunPlan:
    """One run.

    Attributes:
        workflow: Roles, slots and policies.
        roles: Role to its plan.
        steps: Iterations.
        accuracy: Course of the accuracy, one value per step.
        episodes: Per iteration; likewise ``problems``.
        noise: How things scatter.
        lr: Course of the learning rate; movement follows its square.
        engine: k3 between the rollout engine and the trainer.
        validation: Validate every so many steps; 0 never. Likewise ``validated``: on how many
            problems.
        ability: Course of the accuracy in validation; None for that of training.
        coins: Share of outcomes that the reward replaces by coin flips.
        base: Whether the policy before training was measured (``StepRecord.base``).
    """

    workflow: Workflow
    roles: Mapping[str, RolePlan]
    steps: int
    accuracy: Array
    episodes: int = 32
    problems: int = 4
    noise: Noise = field(default_factory=Noise)
    lr: Array | None = None
    engine: float = 1e-13
    validation: int = 4
    validated: int = 64
    ability: Array | None = None
    coins: float = 0.0
    base: bool = False


def course(steps: int, points: Mapping[int, float]) -> Array:
    """Straight lines between step numbers and values, constant outside."""
    known = sorted(points)
    return np.interp(np.arange(1, steps + 1), known, [points[step] for step in known])


def growth(steps: int, points: Mapping[int, float]) -> Array:
    """The same on a logarithmic scale."""
    return np.exp(course(steps, {step: float(np.log(value)) for step, value in points.items()}))
