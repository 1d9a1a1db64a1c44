"""Labelled stresses: ways to make a run go wrong on purpose, for a monitor to find.

A stress is part of the configuration, is written into everything a run leaves behind, and changes
nothing but rewards or the learning rate from a stated iteration on.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Literal

from reference_trainer.episodes import Episode
from reference_trainer.seeds import derive

Kind = Literal["none", "length_bonus", "reward_noise", "hot_lr"]


@dataclass(frozen=True, slots=True)
class Stress:
    """What is injected.

    Attributes:
        kind: ``length_bonus`` pays ``role`` for long outputs; ``reward_noise`` replaces outcomes by
            coins; ``hot_lr`` multiplies the learning rate of every policy.
        role: The role that gets the length bonus.
        bonus: Added to the reward of a long output.
        over_tokens: An output with more tokens than this is long.
        share: Share of episodes whose outcome becomes a coin flip.
        factor: What the learning rate is multiplied with.
        start_step: First iteration with the stress, so that a baseline exists before it.
    """

    kind: Kind = "none"
    role: str = ""
    bonus: float = 0.5
    over_tokens: int = 10
    share: float = 0.0
    factor: float = 5.0
    start_step: int = 1

    @property
    def label(self) -> str:
        """One line for headers and console; ``none`` without a stress."""
        if self.kind == "length_bonus":
            return (
                f"injected verbosity: +{self.bonus:g} reward for {self.role} outputs "
                f"over {self.over_tokens} tokens from step {self.start_step}"
            )
        if self.kind == "reward_noise":
            return f"injected reward noise: {self.share:.0%} coin flips from step {self.start_step}"
        if self.kind == "hot_lr":
            return f"hot learning rate: x{self.factor:g} from step {self.start_step}"
        return "none"

    def lr_factor(self, step: int) -> float:
        """What the learning rate of iteration ``step`` is multiplied with."""
        return self.factor if self.kind == "hot_lr" and step >= self.start_step else 1.0


def inject(episodes: list[Episode], stress: Stress, *, step: int, seed: int) -> list[Episode]:
    """The episodes with the stress applied to their rewards; outcomes (``correct``) stay true."""
    if step < stress.start_step:
        return episodes
    if stress.kind == "length_bonus":
        return [_pay_length(episode, stress) for episode in episodes]
    if stress.kind != "reward_noise":
        return episodes
    rng = random.Random(derive(seed, "stress", step))
    return [
        _pay(episode, float(rng.random() < 0.5)) if rng.random() < stress.share else episode
        for episode in episodes
    ]


def _pay(episode: Episode, reward: float) -> Episode:
    return replace(episode, spans=tuple(replace(span, reward=reward) for span in episode.spans))


def _pay_length(episode: Episode, stress: Stress) -> Episode:
    spans = tuple(
        replace(span, reward=span.reward + stress.bonus)
        if span.role == stress.role and len(span.output_ids) > stress.over_tokens
        else span
        for span in episode.spans
    )
    return replace(episode, spans=spans)
