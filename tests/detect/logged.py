"""A run of one policy as a trainer logs it: columns of numbers, made sick by the tests.

The healthy one learns from 20 % to 70 % of its problems, in 16 groups of 8 responses a step.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from roledrift.detect.suite import DetectorSuite
from roledrift.judgement import Alert, Verdict
from roledrift.records import Stat, StepRecord
from roledrift.workflow import SINGLE, Workflow
from tests.detect.runs import findings, judged, verdict_of

ROLE = SINGLE.role_names[0]
TOTALS = ("reward", "lr", "val_accuracy", "eval_reward")

Floats = NDArray[np.float64]
Logged = dict[str, Floats]


def healthy(seed: int = 0, steps: int = 240) -> Logged:
    """Columns of a healthy run."""
    rng = np.random.default_rng(seed)
    t = np.arange(steps)
    skill = 0.2 + 0.5 / (1 + np.exp(-(t - 0.5 * steps) / (0.15 * steps)))
    chance = rng.beta(2 * skill[:, None], 2 * (1 - skill[:, None]), (steps, 16))
    right = rng.binomial(8, chance) / 8
    noise = rng.normal
    validation = np.where(t % 10 == 0, rng.binomial(200, skill) / 200, np.nan)
    return {
        "reward": right.mean(axis=1),
        "lr": 1e-6 * np.minimum(1.0, (t + 1) / 20),
        "val_accuracy": validation,
        "zero_variance": ((right == 0) | (right == 1)).mean(axis=1),
        "reward_std": np.sqrt(right * (1 - right)).mean(axis=1),
        "entropy": 0.5 * np.exp(-t / steps + noise(0, 0.05, steps)),
        "reference.k3": 1e-4 * (1 + t) ** 1.2 * np.exp(noise(0, 0.3, steps)),
        "grad_norm": 0.3 * np.exp(noise(0, 0.4, steps)),
        "length": 300 + 0.2 * t + noise(0, 15, steps),
        "truncated": rng.binomial(128, 0.02, steps) / 128,
        "clip_fraction": rng.binomial(400, 0.05, steps) / 400,
        "clip_low": rng.binomial(400, 0.025, steps) / 400,
        "clip_high": rng.binomial(400, 0.025, steps) / 400,
        "repetition": rng.binomial(400, 0.02, steps) / 400,
        "step_time": 40 * np.exp(noise(0, 0.08, steps)),
        "explained_variance": np.minimum(0.6, t / 40) + noise(0, 0.03, steps),
    }


def records(columns: Mapping[str, Floats], role: str = ROLE) -> list[StepRecord]:
    """The columns as records; NaN is a number that a step has not logged."""
    steps = len(next(iter(columns.values())))

    def at(names: list[str], step: int) -> dict[str, float]:
        return {name: float(columns[name][step]) for name in names}

    totals = [name for name in columns if name in TOTALS]
    stats = [name for name in columns if name not in TOTALS]
    return [
        StepRecord(
            step=step + 1,
            groups={role: {name: Stat(1, value) for name, value in at(stats, step).items()}},
            totals={n: value for n, value in at(totals, step).items() if not np.isnan(value)},
        )
        for step in range(steps)
    ]


def told(
    columns: Mapping[str, Floats], workflow: Workflow = SINGLE, role: str = ROLE
) -> tuple[DetectorSuite, list[Alert], set[str]]:
    """The suite, the alerts, and the names of everything found."""
    suite, alerts = judged(records(columns, role), workflow)
    return suite, alerts, {name for name, _ in findings(alerts)}


def named(columns: Mapping[str, Floats]) -> set[str]:
    """The names of everything found."""
    return told(columns)[2]


def verdict(columns: Mapping[str, Floats], detector: str, role: str = ROLE) -> Verdict:
    """The last verdict of a detector."""
    return verdict_of(told(columns)[0], detector, role)
