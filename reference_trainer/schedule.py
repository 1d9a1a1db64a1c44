"""The learning rate over a run, as a function of the iteration and nothing else."""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["constant", "linear", "cosine"]
"""What follows the warm-up: nothing, a straight line, or half a cosine, both down to the floor."""


def lr_factor(
    position: int, *, schedule: Schedule, warmup: int, total: int, floor: float = 0.0
) -> float:
    """Share of the full learning rate at ``position``.

    The warm-up is linear, ``position / warmup``. A decay would reach ``floor`` one position after
    the last one, so that no iteration is spent at a rate of zero; after that it stays there.

    Args:
        position: Iteration, from 1.
        schedule: What follows the warm-up.
        warmup: Iterations until the factor is 1.
        total: Iterations of the run.
        floor: Smallest share after the warm-up.
    """
    if position < warmup:
        return position / warmup
    if schedule == "constant":
        return 1.0
    progress = min(1.0, (position - warmup) / max(1, total + 1 - warmup))
    share = 1.0 - progress if schedule == "linear" else 0.5 * (1 + math.cos(math.pi * progress))
    return floor + (1.0 - floor) * share
