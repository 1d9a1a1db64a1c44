"""The same records told differently: what a verdict must not depend on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from roledrift.records import Stat, Stats, StepRecord

Variant = Callable[[Sequence[StepRecord]], list[StepRecord]]

_MOVEMENT = (".k3", ".chi2", ".k1")
_NUMBERS = tuple(field.name for field in fields(Stat) if field.name not in ("n", "shares"))
_SETTINGS = ("lr", "temperature", "batch", "minibatch", "updates", "optimizer")
"""First parts of totals that are settings rather than symptoms."""

_SETTING_STATS = ("updates", "lr", "temperature")


def as_recorded(steps: Sequence[StepRecord]) -> list[StepRecord]:
    """Nothing changed."""
    return list(steps)


def scaled(factor: float) -> Variant:
    """Every ``*.k3``, ``*.chi2`` and ``*.k1`` multiplied: a verdict must not change."""

    def change(steps: Sequence[StepRecord]) -> list[StepRecord]:
        return [
            _groups(
                step, lambda name, stat: _times(stat, factor) if name.endswith(_MOVEMENT) else stat
            )
            for step in steps
        ]

    return change


def symptoms_alone(steps: Sequence[StepRecord]) -> list[StepRecord]:
    """Without the recorded settings: learning rates, optimizer steps, temperatures."""
    return [
        replace(
            _groups(step, lambda name, stat: None if name in _SETTING_STATS else stat),
            totals={
                name: value
                for name, value in step.totals.items()
                if name.split("/")[0] not in _SETTINGS
            },
            labels={},
        )
        for step in steps
    ]


def mismatched(k3: float) -> Variant:
    """An engine that is off by ``k3`` nats per token from the first step on, and stays so."""

    def change(steps: Sequence[StepRecord]) -> list[StepRecord]:
        rng = np.random.default_rng(int(k3 * 1e6))
        return [_groups(step, lambda name, stat: _off(name, stat, k3, rng)) for step in steps]

    return change


def _off(name: str, stat: Stat, k3: float, rng: np.random.Generator) -> Stat:
    kind, _, what = name.partition(".")
    if kind not in ("rollout", "old"):
        return stat
    level = k3 * float(np.exp(rng.normal(0, 0.1)))
    spread = float(np.sqrt(2 * level))
    if what in ("k3", "chi2"):
        return replace(stat, mean=stat.mean + (level if what == "k3" else 2 * level))
    if what == "log_ppl_abs_diff":
        # A span of some twenty tokens: their errors average out, by the square root.
        return replace(stat, mean=float(np.hypot(stat.mean, spread / 5)))
    if what == "peak":
        return replace(stat, mean=float(np.hypot(stat.mean, 2.5 * spread)))
    return stat


def _times(stat: Stat, factor: float) -> Stat:
    changed = {
        name: value * factor for name in _NUMBERS if (value := getattr(stat, name)) is not None
    }
    return replace(stat, **changed)


def _groups(step: StepRecord, change: Callable[[str, Stat], Stat | None]) -> StepRecord:
    groups: dict[str, Stats] = {}
    for group, stats in step.groups.items():
        changed = {name: change(name, stats[name]) for name in stats}
        groups[group] = {name: stat for name, stat in changed.items() if stat is not None}
    return replace(step, groups=groups)


VARIANTS: Mapping[str, Variant] = {
    "as recorded": as_recorded,
    "movement x 0.1": scaled(0.1),
    "movement x 0.01": scaled(0.01),
    "symptoms alone": symptoms_alone,
    "engine off by 2e-3": mismatched(2e-3),
    "engine off by 1e-2": mismatched(1e-2),
}
"""Name to what is done to the records."""
