"""Simulated runs as columns of numbers: make a healthy one, make it sick, take its records.

A healthy run here learns (accuracy 0.35 to 0.7), is measured completely, and has the noise of the
recorded healthy runs: 7 % on the mean length, 0.3 on the logarithm of the movement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roledrift.config import Config
from roledrift.detect.suite import DetectorSuite
from roledrift.judgement import Alert, Verdict
from roledrift.records import Stat, StepRecord
from roledrift.workflow import SINGLE, VOTING, Workflow
from tests.detect.healthy import wander

Floats = NDArray[np.float64]

ISOLATED = VOTING.routed("isolated")
GENERATOR, AGGREGATOR = VOTING.role_names

_TOKENS = {"generator": 200.0, "aggregator": 12.0}


class Columns:
    """A healthy run; change ``role[...]`` and ``total[...]`` in place, then call :meth:`records`.

    Args:
        workflow: Its roles get all statistics.
        seed: Of everything random.
        steps: Number of records.
        correlation: Of neighbouring records' noise.
        k3: Movement (k3 per token) of every role.
        accuracy: Accuracy that the policies have; None: rises from 0.35 to 0.7.
        validate: Steps between validations, of ``problems`` problems each; 0: none.
    """

    def __init__(
        self,
        workflow: Workflow = VOTING,
        seed: int = 0,
        *,
        steps: int = 60,
        correlation: float = 0.2,
        k3: float = 1e-4,
        accuracy: Floats | None = None,
        validate: int = 5,
        problems: int = 200,
    ) -> None:
        self.workflow, self.steps, self.validate = workflow, steps, validate
        self.problems, self.correlation, self.k3 = problems, correlation, k3
        self.rng = rng = np.random.default_rng(seed)
        t = np.arange(steps)
        self.skill = 0.35 + 0.35 / (1 + np.exp(-(t - 20) / 8)) if accuracy is None else accuracy
        solved = rng.binomial(64, self.skill) / 64
        self.total: dict[str, Floats] = {
            "accuracy": solved, "reward": solved.copy(), "lr": np.full(steps, 1e-6)
        }  # fmt: skip
        self.validated = rng.binomial(problems, self.skill) / problems
        self.role: dict[tuple[str, str], Floats] = {}
        self.spread: dict[tuple[str, str], Floats] = {}
        for name in workflow.role_names:
            self._healthy(name, solved)

    def _healthy(self, name: str, solved: Floats) -> None:
        steps, tokens = self.steps, _TOKENS.get(name, 200.0)
        self.role[name, "length"] = tokens * np.exp(self.noise(0.07))
        move = np.exp(self.noise(0.3))
        for stat, unit in (("update.log_ppl_abs_diff", 0.5), ("update.peak", 20.0)):
            self.role[name, stat] = unit * math.sqrt(self.k3) * move * np.exp(self.noise(0.1))
        self.role[name, "update.k3"] = self.k3 * move**2 * np.exp(self.noise(0.2))
        self.role[name, "update.log_ppl_diff"] = np.zeros(steps)
        self.spread[name, "update.log_ppl_diff"] = 0.7 * math.sqrt(self.k3) * move
        gap = np.exp(self.noise(0.2))
        self.role[name, "rollout.k3"] = 1e-4 * gap**2
        self.role[name, "rollout.peak"] = 0.2 * gap
        self.role[name, "rollout.log_ppl_abs_diff"] = 0.005 * gap
        self.role[name, "updates"] = np.ones(steps)
        self.role[name, "reward"] = solved.copy()
        self.role[name, "reward_bias"] = np.zeros(steps)
        self.role[name, "advantage"] = np.zeros(steps)
        self.role[name, "zero_variance"] = np.clip(0.4 + self.noise(0.06), 0, 1)
        self.role[name, "length_credit"] = self.noise(0.05)
        self.spread[name, "length_credit"] = np.full(steps, 0.3)
        for stat in ("truncated", "duplicates", "nonfinite"):
            self.role[name, stat] = np.zeros(steps)

    def noise(self, sd: float) -> Floats:
        """Deviations as correlated as the rest of the run."""
        return wander(self.rng, self.steps, sd, self.correlation)

    def course(self, points: dict[int, float]) -> Floats:
        """A line through ``{step: value}``, constant before and after."""
        return np.interp(np.arange(self.steps), list(points), list(points.values()))

    def move(self, name: str, factor: Floats | float) -> None:
        """Let a role move ``factor`` times as far per step."""
        self.role[name, "update.k3"] *= np.asarray(factor) ** 2
        for stat in ("update.log_ppl_abs_diff", "update.peak"):
            self.role[name, stat] *= factor
        self.spread[name, "update.log_ppl_diff"] *= factor

    def warm_up(self, steps: int, then: Floats | float = 1.0) -> None:
        """Let the learning rate rise linearly over ``steps``; the policies move in proportion."""
        rate = np.minimum(np.arange(1, self.steps + 1) / steps, 1.0) * then
        self.total["lr"] = 1e-6 * rate
        for name in self.workflow.role_names:
            self.move(name, rate)

    def records(self) -> list[StepRecord]:
        """The records, from step 1 on."""
        return [self._record(t) for t in range(self.steps)]

    def _record(self, t: int) -> StepRecord:
        groups: dict[str, dict[str, Stat]] = {name: {} for name in self.workflow.role_names}
        for (name, stat), values in self.role.items():
            sd = self.spread.get((name, stat))
            groups[name][stat] = Stat(64, float(values[t]), None if sd is None else float(sd[t]))
        p = float(self.total["accuracy"][t]) if "accuracy" in self.total else 0.5
        sd = math.sqrt(max(p * (1 - p), 0.0))
        groups["*"] = {"reward": Stat(64, float(self.total["reward"][t]), sd)}
        groups["*"]["length"] = Stat(64, 1.0)
        totals = {name: float(values[t]) for name, values in self.total.items()}
        if self.validate and t % self.validate == 0:
            totals |= {"val_accuracy": float(self.validated[t]), "val_n": float(self.problems)}
        return StepRecord(step=t + 1, groups=groups, totals=totals)


def single(seed: int = 0, **other: object) -> Columns:
    """A healthy run of one role."""
    return Columns(SINGLE, seed, **other)  # type: ignore[arg-type]


def judged(
    records: Sequence[StepRecord],
    workflow: Workflow = VOTING,
    config: Config | None = None,
    **other: object,
) -> tuple[DetectorSuite, list[Alert]]:
    """The suite after ``records`` and the alert transitions on the way; no detector may fail."""
    known = {"rewinds": False} | other
    suite = DetectorSuite(workflow, config, **known)  # type: ignore[arg-type]
    alerts = [alert for record in records for alert in suite.update(record)]
    assert suite.faults == {}
    return suite, alerts


def findings(alerts: Sequence[Alert]) -> set[tuple[str, str]]:
    """``(finding, role)`` of everything that was ever open."""
    return {(one.finding, one.role) for one in alerts if one.state != "closed"}


def verdict_of(suite: DetectorSuite, detector: str, role: str) -> Verdict:
    """The latest verdict of a detector on a role."""
    (found,) = [one for one in suite.verdicts if (one.detector, one.role) == (detector, role)]
    return found
