"""Random series: correlated, with heavy tails, with a spread that changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Noise:
    """How the statistics of a simulated run scatter.

    Attributes:
        correlation: Lag-1 autocorrelation.
        tails: ``normal``, ``t3`` (three degrees of freedom), or ``outliers`` (every fiftieth record
            is off by four to eight standard deviations).
        spread: ``steady``, ``doubles`` in the middle of the run, or ``wanders`` by 40 %.
        length: Standard deviation of the logarithm of a mean length; as recorded, .06 (90th
            percentile .14).
        movement: Likewise of ``update.k3``: 1.0 (1.56).
        entropy: Likewise of the entropy.
    """

    correlation: float = 0.0
    tails: Literal["normal", "t3", "outliers"] = "normal"
    spread: Literal["steady", "doubles", "wanders"] = "steady"
    length: float = 0.06
    movement: float = 1.0
    entropy: float = 0.11

    def draw(self, rng: np.random.Generator, steps: int) -> Array:
        """A series of mean 0 and, but for tails and changes, standard deviation 1."""
        if self.tails == "t3":
            shocks = rng.standard_t(3, steps) / np.sqrt(3)
        else:
            shocks = rng.standard_normal(steps)
        rho = self.correlation
        start = [rho * rng.standard_normal()]
        series, _ = lfilter([np.sqrt(1 - rho**2)], [1, -rho], shocks, zi=start)
        series = np.asarray(series, dtype=np.float64)
        if self.tails == "outliers":
            hit = rng.random(steps) < 0.02
            series = np.where(
                hit, rng.uniform(4, 8, steps) * rng.choice([-1.0, 1.0], steps), series
            )
        if self.spread == "doubles":
            series = series * np.where(np.arange(steps) >= steps // 2, 2.0, 1.0)
        if self.spread == "wanders":
            slow, _ = lfilter(
                [np.sqrt(1 - 0.95**2)], [1, -0.95], rng.standard_normal(steps), zi=[0.0]
            )
            series = series * np.exp(0.4 * np.asarray(slow))
        return series

    def around(self, rng: np.random.Generator, level: Array, sd: float) -> Array:
        """``level`` with lognormal noise."""
        return level * np.exp(sd * self.draw(rng, len(level)))


def counted(rng: np.random.Generator, share: Array, n: int) -> Array:
    """A share of ``n`` things that are drawn one by one."""
    return rng.binomial(n, np.clip(share, 0.0, 1.0)) / n
