"""Labelled stresses: ways to make a run go wrong on purpose, for a monitor to find.

A stress is part of the configuration and is written into everything a run leaves behind. It changes
one thing from a stated iteration on: rewards, rows, problems, learning rates, or what the rollout
engine serves (``rollout/misserving.py``).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from reference_trainer.episodes import Episode, Span
from reference_trainer.seeds import derive
from reference_trainer.tasks import Task
from reference_trainer.tasks.code import CodeTask
from reference_trainer.tasks.math import MathTask
from roledrift import Workflow

Kind = Literal[
    "none",
    "length_bonus",
    "reward_noise",
    "duplicate_rows",
    "longer_problems",
    "hot_lr",
    "frozen",
    "unserved",
    "stale",
    "temperature",
]

MISSERVING = ("unserved", "stale", "temperature")
"""Kinds in which the engine does not sample as the trainer believes."""

_WORDS: Mapping[Kind, str] = {
    "none": "none",
    "length_bonus": (
        "injected verbosity: +{bonus:g} reward for {paid} {role} outputs over {over_tokens} tokens"
    ),
    "reward_noise": "injected reward noise: {share:.0%} coin flips",
    "duplicate_rows": "duplicated rows: copies of {share:.0%} of the episodes are trained on too",
    "longer_problems": "curriculum: problems of {ops} operators, phased in over {ramp} steps",
    "hot_lr": "hot learning rate: x{factor:g}",
    "frozen": "frozen: {whose} gets no learning rate",
    "unserved": "unserved adapter: the engine samples the base model for {whose}",
    "stale": "stale adapter: the engine samples {whose} as it was {lag} iterations ago",
    "temperature": "temperature mismatch: the engine samples {whose} at x{factor:g}",
}


@dataclass(frozen=True, slots=True)
class Stress:
    """What is injected.

    Attributes:
        kind: ``length_bonus`` pays ``role`` for long outputs. ``reward_noise`` replaces outcomes by
            coins. ``duplicate_rows`` trains on copies of some episodes too, as padding to a round
            number does. ``longer_problems`` poses problems with ``ops`` operators. ``hot_lr``
            multiplies the learning rate. ``frozen`` makes it 0. ``unserved``, ``stale`` and
            ``temperature`` let the engine sample from the base model, from old weights, or at
            another temperature, without saying so.
        role: The role that gets the length bonus. For ``hot_lr``, ``frozen`` and what the engine
            does: only this role's policy is concerned; empty for every policy.
        bonus: Added to the reward of a long output.
        over_tokens: An output with more tokens than this is long.
        only_correct: The bonus is paid only in episodes that were solved.
        share: Share of episodes whose outcome becomes a coin flip, or that are duplicated.
        factor: What the learning rate or the temperature is multiplied with.
        lag: Iterations by which stale weights are behind.
        ops: Operators of the longer problems.
        ramp: Iterations over which their share grows from 0 to 1.
        start_step: First iteration with the stress, so that a baseline exists before it.
    """

    kind: Kind = "none"
    role: str = ""
    bonus: float = 0.5
    over_tokens: int = 10
    only_correct: bool = False
    share: float = 0.0
    factor: float = 5.0
    lag: int = 4
    ops: int = 4
    ramp: int = 1
    start_step: int = 1

    @property
    def label(self) -> str:
        """One line for headers and console; ``none`` without a stress."""
        words = _WORDS[self.kind].format(
            bonus=self.bonus,
            paid="correct" if self.only_correct else "all",
            role=self.role,
            over_tokens=self.over_tokens,
            share=self.share,
            factor=self.factor,
            lag=self.lag,
            ops=self.ops,
            ramp=self.ramp,
            whose=f"{self.role}'s policy" if self.role else "every policy",
        )
        return words if self.kind == "none" else f"{words} from step {self.start_step}"

    def lr_factors(self, step: int, workflow: Workflow) -> dict[str, float]:
        """What the learning rate of each policy is multiplied with in iteration ``step``."""
        factor = {"hot_lr": self.factor, "frozen": 0.0}.get(self.kind, 1.0)
        hit = self.policies(workflow) if step >= self.start_step else frozenset[str]()
        return {policy: factor if policy in hit else 1.0 for policy in workflow.policies}

    def policies(self, workflow: Workflow) -> frozenset[str]:
        """The policies that are concerned."""
        return frozenset([workflow.policy_of(self.role)] if self.role else workflow.policies)


def inject(episodes: list[Episode], stress: Stress, *, step: int, seed: int) -> list[Episode]:
    """The episodes with the stress applied; outcomes (``correct``) stay true."""
    if step < stress.start_step:
        return episodes
    if stress.kind == "length_bonus":
        return [_pay_length(episode, stress) for episode in episodes]
    if stress.kind == "duplicate_rows":
        return episodes + episodes[: round(stress.share * len(episodes))]
    if stress.kind != "reward_noise":
        return episodes
    rng = random.Random(derive(seed, "stress", step))
    return [
        _pay(episode, float(rng.random() < 0.5)) if rng.random() < stress.share else episode
        for episode in episodes
    ]


def posed(task: Task, stress: Stress, *, step: int, seed: int, number: int) -> Task:
    """The task that training problem ``number`` is drawn from in iteration ``step``."""
    if stress.kind != "longer_problems" or step < stress.start_step:
        return task
    assert isinstance(task, MathTask | CodeTask), "only these are made up, see Config"
    share = (step - stress.start_step + 1) / max(stress.ramp, 1)
    if random.Random(derive(seed, "longer", number)).random() >= share:
        return task
    return replace(task, min_ops=stress.ops, max_ops=stress.ops)


def problems(stress: Stress, shape: Workflow) -> list[str]:
    """What is wrong with the settings for a workflow of this shape."""
    wrong = []
    needed = stress.kind == "length_bonus"
    if (needed or stress.role) and stress.role not in shape.role_names:
        wrong.append(
            f"stress.role {stress.role!r} is not a role; there are {list(shape.role_names)}"
        )
    if not 0.0 <= stress.share <= 1.0:
        wrong.append(f"stress.share must be between 0 and 1, got {stress.share}")
    if stress.kind == "temperature" and stress.factor <= 0:
        wrong.append(f"stress.factor must be greater than 0, got {stress.factor}")
    least = {"stress.lag": (stress.lag, 1), "stress.ops": (stress.ops, 2)}
    wrong += [
        f"{name} must be at least {low}, got {value}"
        for name, (value, low) in least.items()
        if value < low
    ]
    return wrong


def _pay(episode: Episode, reward: float) -> Episode:
    return replace(episode, spans=tuple(replace(span, reward=reward) for span in episode.spans))


def _pay_length(episode: Episode, stress: Stress) -> Episode:
    if stress.only_correct and not episode.correct:
        return episode

    def paid(span: Span) -> bool:
        return span.role == stress.role and len(span.output_ids) > stress.over_tokens

    spans = tuple(
        replace(span, reward=span.reward + stress.bonus) if paid(span) else span
        for span in episode.spans
    )
    return replace(episode, spans=spans)
