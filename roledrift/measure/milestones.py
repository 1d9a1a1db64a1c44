"""The checkpoints of a run whose texts are counted: early, best and last (arXiv 2605.24202)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

PROBLEMS = 100
"""Most problems per checkpoint, as in the paper."""

ONE_OF_THE_FIRST = "problem"
"""Flag of a text that was kept because it is about one of the first problems of its step."""


def milestones(kept: Sequence[int], validation: Mapping[int, float]) -> tuple[int, ...]:
    """Steps with texts nearest to early, best and last; see :func:`phases`."""
    return tuple(sorted(set(phases(kept, validation).values())))


def phases(kept: Sequence[int], validation: Mapping[int, float]) -> dict[str, int]:
    """``early``, ``best`` and ``last``, each to the nearest of the steps ``kept``, in order.

    Early is halfway from the first to the best validation. Without validations the best is not
    known: ``middle`` stands for it.
    """
    if not kept:
        return {}
    finite = {step: value for step, value in validation.items() if math.isfinite(value)}
    if finite:
        first, best = min(finite), max(sorted(finite), key=lambda step: finite[step])
        wanted = {"early": (first + best) / 2, "best": best, "last": kept[-1]}
    else:
        wanted = {"early": kept[0], "middle": (kept[0] + kept[-1]) / 2, "last": kept[-1]}
    return {
        name: min(kept, key=lambda step: (abs(step - wanted_step), step))
        for name, wanted_step in wanted.items()
    }
