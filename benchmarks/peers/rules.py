"""Logs in which what each of rlwatch's rules describes happens; rlwatch itself simulates none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from benchmarks.peers.scenarios import Log, Row, change_from, learning

_ONSET = 150


def of_rlwatch(seed: int) -> Iterator[Log]:
    """Each of its rules for failures; a reward that rises for long is none by itself."""
    for scenario, (change, accepted) in _RULES.items():
        rows = _with_advantages(seed)
        change(rows, np.random.default_rng(2000 + seed))
        yield Log("rlwatch", scenario, seed, tuple(rows), accepted)


def _with_advantages(seed: int) -> list[Row]:
    """A healthy log with the entropy in rlwatch's range: it alarms below 1 nat."""
    rng = np.random.default_rng(3000 + seed)
    rows = learning(seed)
    for row in rows:
        row["entropy"] *= 6
        row["adv_std"] = float(0.8 * rng.lognormal(0, 0.05))
    return rows


def _entropy(rows: list[Row], _: np.random.Generator) -> None:
    """Without entropy there is nothing to learn from: the reward stays where it is."""
    here = sum(row["reward"] for row in rows[_ONSET - 20 : _ONSET]) / 20
    change_from(rows, _ONSET, "reward", lambda _, r: here + 0.3 * (r - here))
    change_from(rows, _ONSET, "entropy", lambda t, e: e * math.exp(-t / 20))


def _kl(rows: list[Row], _: np.random.Generator) -> None:
    change_from(rows, _ONSET, "kl", lambda t, k: k * (1 + 3 * t))


def _two_levels(rows: list[Row], rng: np.random.Generator) -> None:
    """The reward of a batch jumps between two levels, and its spread triples."""
    change_from(rows, _ONSET, "reward_std", lambda _, s: 3.5 * max(s, 0.2))
    change_from(rows, _ONSET, "reward", lambda _, r: 0.0 if rng.random() < 0.5 else 2 * r)


def _advantages(rows: list[Row], _: np.random.Generator) -> None:
    change_from(rows, _ONSET, "adv_std", lambda _, a: 6 * a)


def _loss(rows: list[Row], _: np.random.Generator) -> None:
    change_from(rows, _ONSET, "loss", lambda *_: math.nan)


def _gradients(rows: list[Row], rng: np.random.Generator) -> None:
    change_from(rows, _ONSET, "grad_norm", lambda _, g: 40 * g if rng.random() < 0.1 else g)


def _slow_fall(rows: list[Row], _: np.random.Generator) -> None:
    change_from(rows, _ONSET, "reward", lambda t, r: r * max(0.2, 1 - t / 150))


_RULES: Mapping[str, tuple[Callable[[list[Row], np.random.Generator], None], tuple[str, ...]]] = {
    "healthy": (lambda _, __: None, ()),
    "entropy_collapse": (_entropy, ("entropy_floor", "entropy_collapse")),
    "kl_explosion": (_kl, ("kl_runaway",)),
    "reward_hacking": (_two_levels, ("reward_drop", "reward_detached", "reward_changed")),
    "advantage_variance": (_advantages, ("reward_changed",)),
    "loss_nan": (_loss, ("gradient_nonfinite", "nonfinite")),
    "gradient_norm_spike": (_gradients, ("gradient_spikes",)),
    "reward_mean_drift": (_slow_fall, ("reward_drop", "accuracy_cliff")),
}
