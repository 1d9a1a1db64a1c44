"""Courses of a statistic over a run: level, falling, rising."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

STEPS = 60


def noisy(values: Sequence[float], seed: int = 0, sd: float = 0.1) -> list[float]:
    rng = np.random.default_rng(seed)
    return [float(x) for x in np.asarray(values) * np.exp(sd * rng.normal(size=len(values)))]


def ramp(before: float, after: float, start: int = 20, length: int = 15) -> list[float]:
    share = np.clip((np.arange(STEPS) - start) / length, 0, 1)
    return [float(x) for x in before * (after / before) ** share]


def line(before: float, after: float, start: int = 20, length: int = 15) -> list[float]:
    share = np.clip((np.arange(STEPS) - start) / length, 0, 1)
    rng = np.random.default_rng(9)
    noise = 0.03 * rng.normal(size=STEPS)
    return [float(x) for x in np.clip(before + (after - before) * share + noise, 0, 1)]


LEVEL = line(0.5, 0.5)


FALLS = line(0.7, 0.3)


RISES = line(0.4, 0.9, 5, 30)
