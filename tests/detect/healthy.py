"""Simulated runs that learn: what the signs of collapse look like where nothing is wrong.

The shapes are those of real healthy runs of the reference trainer: within some ten steps accuracy
goes from 0.4 to 0.9, entropy to a fifth, groups with equal rewards from 0.35 to 0.85, siblings
agree more and open alike, all because they are right; what is left to be wrong is hard and few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roledrift.records import Stat, StepRecord

Floats = NDArray[np.float64]
ROLES = ("generator", "aggregator")


def wander(rng: np.random.Generator, steps: int, sd: float, correlation: float) -> Floats:
    """A stationary AR(1) series of standard deviation ``sd`` around 0."""
    x, out = rng.normal() * sd, np.empty(steps)
    for t in range(steps):
        x = correlation * x + rng.normal() * sd * np.sqrt(1 - correlation**2)
        out[t] = x
    return out


class Run:
    """A healthy run of the voting workflow as columns; change some and take its records.

    Args:
        seed: Of everything random.
        correlation: Of neighbouring records' deviations.
        steps: Number of records.
        gain: Accuracy at the end minus accuracy at the start.
    """

    def __init__(
        self, seed: int, correlation: float, *, steps: int = 100, gain: float | None = None
    ) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.steps, self.correlation = steps, correlation
        start, middle, width = rng.uniform(0.3, 0.5), rng.uniform(8, 40), rng.uniform(3, 12)
        gain = rng.uniform(0.3, 0.48) if gain is None else gain
        self.learnt = 1 / (1 + np.exp(-(np.arange(steps) - middle) / width))
        self.skill = np.clip(start + gain * self.learnt + self.wander(0.04), 0.02, 0.98)
        self.solve(self.skill)
        self.entropy = 0.17 * 5.0**-self.learnt
        self.equal = np.clip(0.1 + 0.8 * np.abs(self.skill - 0.4) / 0.5 + self.wander(0.06), 0, 1)
        self.agreement = np.clip(0.3 + 0.1 * self.learnt + self.wander(0.04), 0.02, 0.98)
        self.overlap = np.clip(0.4 + 0.1 * self.learnt + self.wander(0.04), 0.02, 0.98)
        self.openers = 18 * 2.0**-self.learnt
        self.choices = np.maximum(4 - 2 * self.learnt + rng.integers(-1, 2, steps), 1)
        self.norm = 0.1 * np.exp(self.wander(0.4))
        self.norm *= np.where(rng.random(steps) < 0.02, rng.uniform(2, 5, steps), 1)

    def solve(self, skill: Floats) -> None:
        """Draw what is solved with ``skill``: 64 episodes per record, 200 validations."""
        self.skill = skill
        self.accuracy = self.rng.binomial(64, skill) / 64
        self.validated = self.rng.binomial(200, skill) / 200

    def ramp(self, start: int, length: int) -> Floats:
        """0 before ``start``, 1 from ``start + length`` on, a line between."""
        return np.clip((np.arange(self.steps) - start) / length, 0.0, 1.0)

    def wander(self, sd: float) -> Floats:
        """Deviations that are correlated as in the rest of the run."""
        return wander(self.rng, self.steps, sd, self.correlation)

    def records(self, *, validate_every: int = 10) -> list[StepRecord]:
        """The run's records; validations at every ``validate_every``-th."""
        entropy = {role: self.entropy * np.exp(self.wander(0.12)) for role in ROLES}
        equal = {role: np.clip(self.equal + self.wander(0.05), 0, 1) for role in ROLES}
        return [
            StepRecord(
                step=t,
                groups={
                    "generator": self._of("generator", t, entropy, equal) | self._siblings(t),
                    "aggregator": self._of("aggregator", t, entropy, equal)
                    | {"openers": Stat(64, float(round(self.choices[t])))},
                },
                totals={"accuracy": float(self.accuracy[t])}
                | (
                    {"val_accuracy": float(self.validated[t])}
                    if (t + 1) % validate_every == 0
                    else {}
                ),
            )
            for t in range(self.steps)
        ]

    def _of(
        self, role: str, t: int, entropy: dict[str, Floats], equal: dict[str, Floats]
    ) -> dict[str, Stat]:
        return {
            "entropy": Stat(2000, float(entropy[role][t])),
            "zero_variance": Stat(16, float(equal[role][t])),
            "grad_norm": Stat(1, float(self.norm[t])),
        }

    def _siblings(self, t: int) -> dict[str, Stat]:
        # Of 64 episodes with three slots, the pairs in which both are wrong.
        pairs = self.rng.binomial(192, (1 - self.skill[t]) ** 2)
        found = {"openers": Stat(192, float(round(self.openers[t])))}
        if pairs:
            same = self.rng.binomial(pairs, self.agreement[t]) / pairs
            found["wrong_agreement"] = Stat(float(pairs), same)
            noise = self.rng.normal() * 0.2 / np.sqrt(max(pairs / 3, 1))
            found["wrong_jaccard"] = Stat(
                float(max(pairs // 3, 1)), float(np.clip(self.overlap[t] + noise, 0, 1))
            )
        return found
