"""Synthetic runs built from records: what healthy and drifting runs look like in numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from roledrift.records import GramRecord, Stat, StepRecord

Columns = Mapping[str, Mapping[str, ArrayLike]]
RunMaker = Callable[..., list[StepRecord]]
NoiseMaker = Callable[..., NDArray[np.float64]]


def _noise(
    rng: np.random.Generator,
    steps: int,
    *,
    sd: float,
    correlation: float = 0.5,
    outliers: float = 0.0,
    up_to: float = 1.0,
) -> NDArray[np.float64]:
    """Factors around 1: an autocorrelated lognormal series with single large outliers."""
    shocks = rng.normal(size=steps) * sd * np.sqrt(1 - correlation**2)
    log = np.empty(steps)
    last = rng.normal() * sd
    for t in range(steps):
        last = log[t] = correlation * last + shocks[t]
    log += np.where(rng.random(steps) < outliers, rng.uniform(0.4, np.log(max(up_to, 2)), steps), 0)
    return np.exp(log)


def _run(columns: Columns, *, first: int = 0) -> list[StepRecord]:
    """Records from ``{role: {statistic: values}}``; None is a missing value."""
    steps = max(len(np.atleast_1d(v)) for stats in columns.values() for v in stats.values())
    records = []
    series: dict[str, dict[str, list[Any]]] = {
        role: {name: list(values) for name, values in stats.items()}  # type: ignore[arg-type]
        for role, stats in columns.items()
    }
    for t in range(steps):
        groups = {
            role: {
                name: Stat(64, float(values[t]))
                for name, values in stats.items()
                if t < len(values) and values[t] is not None
            }
            for role, stats in series.items()
        }
        records.append(StepRecord(step=first + t, groups=groups))
    return records


def _ramp(before: float, after: float, *, start: int, length: int, steps: int) -> list[float]:
    """``before``, then log-linearly to ``after`` within ``length`` steps, then ``after``."""
    share = np.clip((np.arange(steps) - start + 1) / length, 0, 1)
    return [float(x) for x in before * (after / before) ** share]


def _gram(
    policy: str, labels: Sequence[str], cosine: float, norms: Sequence[float] | None = None
) -> GramRecord:
    """Gradients of which every two have the same cosine."""
    size = np.asarray(norms if norms is not None else [1.0] * len(labels))
    products = np.outer(size, size) * (cosine + (1 - cosine) * np.eye(len(labels)))
    return GramRecord(policy, tuple(labels), tuple(tuple(row) for row in products.tolist()))


@pytest.fixture
def run() -> RunMaker:
    return _run


@pytest.fixture
def ramp() -> Callable[..., list[float]]:
    return _ramp


@pytest.fixture
def noise() -> NoiseMaker:
    return _noise


@pytest.fixture
def gram() -> Callable[..., GramRecord]:
    return _gram
