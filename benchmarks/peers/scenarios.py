"""Logs with a known failure: of rl-doctor's and rlprobe's own generators, and some of ours."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]

GRADIENTS = ("gradient_spikes", "gradient_nonfinite", "gradient_zero", "gradient_vanishing")
SIGNAL = ("groups_degenerate", "task_too_hard", "advantage_collapse", "signal_loss", "task_solved")

RL_DOCTOR: Mapping[str, tuple[str, ...]] = {
    "healthy": (),
    "entropy_collapse": ("entropy_floor", "entropy_collapse"),
    "saturated_groups": ("task_solved",),
    "too_hard": ("task_too_hard",),
    "reward_hacking": ("verifier_gaming",),
    "length_hacking": ("paid_for_length", "verifier_gaming", "length_inflation"),
    "truncation": ("truncation",),
    "kl_blowup": ("kl_runaway",),
    "clip_saturation": ("clip_saturation", "clip_asymmetry"),
    "grad_spikes": ("gradient_spikes",),
    "plateau": ("plateau",),
    "format_domination": ("component_dominates", "format_gaming"),
}
"""Scenario of rl-doctor's generator to the findings of ours that mean the same."""

RLPROBE: Mapping[str, tuple[str, ...]] = {
    "healthy": (),
    "kl_blowup": ("kl_runaway",),
    "entropy_collapse": ("entropy_floor", "entropy_collapse"),
    "reward_hack_length": ("length_inflation", "paid_for_length"),
    "format_gaming": ("format_gaming", "component_dominates"),
    "clip_saturation": ("clip_saturation",),
    "degenerate_groups": SIGNAL,
    "adv_collapse": ("advantage_collapse",),
    "value_divergence": ("value_divergence",),
    "grad_pathology": GRADIENTS,
    "truncation_starve": ("truncation",),
    "repetition_spiral": ("repetition",),
    "reward_std_death": ("advantage_collapse", "groups_degenerate", "signal_loss"),
    "ref_drift_asymmetry": ("kl_concentrated", "kl_runaway"),
    "throughput_rot": ("slowdown",),
}
"""The same of rlprobe's generator."""


@dataclass(frozen=True, slots=True)
class Log:
    """One log.

    Attributes:
        source: Whose generator made it.
        scenario: Its name there; ``healthy`` or a failure.
        accepted: Findings of roledrift that name this failure.
        engine: What martingale computes of each step's tokens; empty for a log without tokens.
    """

    source: str
    scenario: str
    seed: int
    rows: tuple[Row, ...]
    accepted: tuple[str, ...]
    engine: tuple[Mapping[str, Any], ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.accepted


def of_rl_doctor(seed: int) -> Iterator[Log]:
    """Every scenario of rl-doctor's generator."""
    from rl_doctor.simulate import simulate

    for scenario, accepted in RL_DOCTOR.items():
        rows, _ = simulate(scenario, seed=seed)
        yield Log("rl-doctor", scenario, seed, tuple(rows), accepted)


def of_rlprobe(seed: int) -> Iterator[Log]:
    """Every scenario of rlprobe's generator."""
    from rlprobe.storage import RunReader
    from rlprobe.testing.synth import generate_run

    for scenario, accepted in RLPROBE.items():
        with tempfile.TemporaryDirectory() as folder:
            name = None if scenario == "healthy" else scenario
            run = generate_run(Path(folder) / "run", name, seed=seed)
            rows = tuple(_row(record) for record in RunReader(run).steps())
        yield Log("rlprobe", scenario, seed, rows, accepted)


def _row(record: Any) -> Row:
    body = record.model_dump()
    parts = body.pop("reward_components") or {}
    body.pop("extra", None)
    row = {key: value for key, value in body.items() if value is not None and key != "rank"}
    return row | {f"rewards/{name}/mean": value for name, value in parts.items()}


def of_ours(seed: int) -> Iterator[Log]:
    """Failures that neither of them simulates."""
    for scenario, (change, accepted) in _OURS.items():
        rows = learning(seed)
        change(rows, np.random.default_rng(1000 + seed))
        yield Log("roledrift", scenario, seed, tuple(rows), accepted)


def learning(seed: int) -> list[Row]:
    """A run that learns as real ones do: rewards of few groups, heavy-tailed gradients."""
    rng = np.random.default_rng(seed)
    rows = []
    for step in range(1, 301):
        skill = 0.2 + 0.5 / (1 + math.exp(-(step - 120) / 40))
        solved = rng.binomial(
            1, np.clip(rng.beta(2 * skill, 2 * (1 - skill), (16, 1)), 0, 1), (16, 8)
        )
        accuracy = float(solved.mean())
        rows.append(
            {
                "step": step,
                "reward": accuracy,
                "reward_std": float(solved.std(axis=1).mean()),
                "frac_reward_zero_std": float((solved.std(axis=1) == 0).mean()),
                "entropy": float(0.5 * math.exp(-step / 400) * rng.lognormal(0, 0.05)),
                "kl": float(1e-4 * (step / 10) ** 1.2 * rng.lognormal(0, 0.3)),
                "grad_norm": float(0.3 * rng.lognormal(0, 0.4)),
                "completions/mean_length": float(300 + step / 5 + rng.normal(0, 15)),
                "completions/clipped_ratio": float(rng.binomial(128, 0.02) / 128),
                "learning_rate": 1e-6 * min(1.0, step / 20),
                "step_time": float(40 * rng.lognormal(0, 0.08)),
                "loss": float(rng.normal(0, 0.01)),
            }
        )
    return rows


def change_from(
    rows: list[Row], first: int, key: str, value: Callable[[int, float], float]
) -> None:
    """Replace the values of a metric from a row on, by how long ago that was and the old value."""
    for row in rows[first:]:
        row[key] = value(row["step"] - first, row[key])


def _strangled(rows: list[Row], rng: np.random.Generator) -> None:
    for row in rows:
        row["kl"] = float(1e-5 * rng.lognormal(0, 0.3))
        row["reward"] = float(rng.binomial(128, 0.2) / 128)
        row["frac_reward_zero_std"] = float(rng.binomial(16, 0.2) / 16)


def _nan(rows: list[Row], _: np.random.Generator) -> None:
    change_from(rows, 200, "grad_norm", lambda *_: math.nan)


def _zero(rows: list[Row], rng: np.random.Generator) -> None:
    change_from(rows, 150, "grad_norm", lambda _, g: 0.0 if rng.random() < 0.7 else g)


def _vanishing(rows: list[Row], _: np.random.Generator) -> None:
    change_from(rows, 100, "grad_norm", lambda t, g: g * math.exp(-t / 25))


def _dead(rows: list[Row], rng: np.random.Generator) -> None:
    for row in rows:
        share = float(rng.binomial(128, 0.5) / 128)
        row |= {"rewards/accuracy/mean": 0.0, "rewards/format/mean": share, "reward": share}


def _stalled(rows: list[Row], _: np.random.Generator) -> None:
    change_from(rows, 150, "step_time", lambda t, s: s * (1 + t / 100))


def _cut(rows: list[Row], rng: np.random.Generator) -> None:
    for row in rows:
        row["completions/clipped_ratio"] = float(rng.binomial(128, 0.85) / 128)


def _collapse(rows: list[Row], _: np.random.Generator) -> None:
    change_from(rows, 180, "reward", lambda t, r: r * max(0.05, 1 - t / 60))


_OURS: Mapping[str, tuple[Callable[[list[Row], np.random.Generator], None], tuple[str, ...]]] = {
    "healthy": (lambda _, __: None, ()),
    "kl_strangled": (_strangled, ("kl_strangled", "no_learning")),
    "gradients_nan": (_nan, ("gradient_nonfinite",)),
    "gradients_zero": (_zero, ("gradient_zero",)),
    "gradients_vanish": (_vanishing, ("gradient_vanishing",)),
    "dead_reward": (_dead, ("component_dead",)),
    "slow_steps": (_stalled, ("slowdown",)),
    "truncated": (_cut, ("truncation",)),
    "reward_collapse": (_collapse, ("reward_drop", "accuracy_cliff")),
}
