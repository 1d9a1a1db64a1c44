"""What earlier healthy runs of the same folder say about how a run should start."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median

Starts = Mapping[str, Mapping[str, float]]
"""Role to stream to the centre of its start, on the stream's scale."""

LEAST_RUNS = 3
"""Earlier runs that a yardstick needs: fewer do not show how much healthy starts differ."""

_WIDTH = 2.0
_LEAST_SPREAD = 0.1


def combined(runs: Sequence[Starts]) -> dict[str, dict[str, tuple[float, float]]]:
    """The starts of earlier runs as yardsticks: role to stream to centre and error.

    The centre is the median over runs. The error is twice the standard deviation of a new run's
    start, ``s sqrt(1 + 1/n)`` with ``s`` the standard deviation between runs, so that only a start
    that none of them resembles is a finding.
    """
    if len(runs) < LEAST_RUNS:
        return {}
    merged: dict[str, dict[str, tuple[float, float]]] = {}
    keys = {(role, name) for run in runs for role, streams in run.items() for name in streams}
    for role, name in sorted(keys):
        values = [run[role][name] for run in runs if name in run.get(role, {})]
        values = [value for value in values if math.isfinite(value)]
        if len(values) < LEAST_RUNS:
            continue
        mean = fmean(values)
        variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
        spread = max(math.sqrt(variance), _LEAST_SPREAD)
        error = _WIDTH * spread * math.sqrt(1 + 1 / len(values))
        merged.setdefault(role, {})[name] = (round(median(values), 6), round(error, 6))
    return merged
