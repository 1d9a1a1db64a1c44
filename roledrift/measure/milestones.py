"""The checkpoints of a run whose texts are counted: early, best and last (arXiv 2605.24202)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

PROBLEMS = 100
"""Most problems per checkpoint, as in the paper."""

ONE_OF_THE_FIRST = "problem"
"""Flag of a text that was kept because it is about one of the first problems of its step."""


def milestones(kept: Sequence[int], validation: Mapping[int, float]) -> tuple[int, ...]:
    """Steps with texts nearest to halfway to the best validation, to the best, and the last.

    Args:
        kept: Steps with texts, in order.
        validation: Step to validation accuracy; without any, the first, middle and last step count.
    """
    if not kept:
        return ()
    finite = {step: value for step, value in validation.items() if math.isfinite(value)}
    if finite:
        first, best = min(finite), max(sorted(finite), key=lambda step: finite[step])
        wanted = [(first + best) / 2, best, kept[-1]]
    else:
        wanted = [kept[0], (kept[0] + kept[-1]) / 2, kept[-1]]
    near = [min(kept, key=lambda step: (abs(step - one), step)) for one in wanted]
    return tuple(sorted(set(near)))
