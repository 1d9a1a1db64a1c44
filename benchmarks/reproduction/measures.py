"""What a test compares of runs; ``docs/reproduction_plan.md`` says what each measure is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.detection.captures import Capture, capture_of
from benchmarks.reproduction.outcomes import Row, solved

WINDOW = 6
"""Iterations of a window of training accuracy."""
FALL = 0.10
"""A run falls if it loses more than this."""
_START = 3
_LEAST_CHI2 = 1e-6

Value = float | bool | None
"""None: the run does not have what the measure needs."""


class Results:
    """All rows, by their place in the plan."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = {(f"{r['experiment']}/{r['arm']}", r["base"], r["seed"]): r for r in rows}

    def find(self, place: str, base: int, seed: int) -> Row | None:
        """The run of ``experiment/arm`` with that base and seed."""
        return self.rows.get((place, base, seed))


def capture(row: Row, role: str = "aggregator") -> Capture:
    """Whether a role lost its terse form: ``lasting``, ``passing`` or ``none``."""
    return capture_of(_series(row, role, "terse"))


def fall(row: Row) -> float | None:
    """Best training accuracy of a window minus that of the last one, without selection bias.

    The best window is chosen on the iterations of one parity and its accuracy is taken from those
    of the other; both ways are averaged.
    """
    accuracy = np.asarray(row["accuracy"], dtype=np.float64)
    if len(accuracy) < 2 * WINDOW:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(accuracy, WINDOW)
    # Of a window that begins at an odd iteration, the first parity is the odd one: swap its halves.
    halves = np.stack([windows[:, ::2].mean(1), windows[:, 1::2].mean(1)])
    halves[:, 1::2] = halves[::-1, 1::2].copy()
    return _best(halves) - float(accuracy[-WINDOW:].mean())


def peak(row: Row) -> float | None:
    """Accuracy of the best validation, chosen on one half of the problems, taken from the other."""
    curves = [solved(bits) for step, bits in row["validation"].items() if int(step) > 0]
    if not curves:
        return None
    table = np.asarray(curves, dtype=np.float64)
    halves = np.stack([table[:, ::2].mean(1), table[:, 1::2].mean(1)])
    return _best(halves)


def last(row: Row) -> float | None:
    """Accuracy of the last validation."""
    steps = [int(step) for step in row["validation"]]
    return fmean(solved(row["validation"][str(max(steps))])) if steps else None


def gain(row: Row) -> float | None:
    """Accuracy of the last validation minus that of the base model."""
    if "0" not in row["validation"] or len(row["validation"]) < 2:
        return None
    after = last(row)
    return None if after is None else after - fmean(solved(row["validation"]["0"]))


def transfer_gain(row: Row, results: Results) -> float | None:
    """Accuracy of a transferred generator minus that of the base model on the same problems."""
    untrained = results.find(f"grid-math-M/{row['arm']}-ip", row["base"], row["seed"])
    if untrained is None:
        return None
    before = solved(untrained["validation"]["0"])
    after = solved(row["validation"]["0"])[: len(before)]
    return fmean(after) - fmean(before)


def movement(row: Row, role: str = "generator") -> float | None:
    """Log of the median k3 of an iteration's updates."""
    values = [value for value in _series(row, role, "k3") if value is not None]
    return math.log(median(values)) if values and median(values) > 0 else None


def first_movement(row: Row, role: str = "generator") -> float | None:
    """Log of the k3 of the first iteration's update."""
    values = _series(row, role, "k3")
    return math.log(values[0]) if values and values[0] and values[0] > 0 else None


def coherence_excess(row: Row, role: str = "generator") -> float | None:
    """Mean cosine between slots on the same problems minus that on different ones."""
    values = [
        same - apart
        for _, name, _, same, apart in row["gradients"]
        if name == role and same is not None
    ]
    return fmean(values) if values else None


def grown(row: Row, role: str) -> bool | None:
    """Whether a role's outputs at least doubled in length."""
    tokens = [value for value in _series(row, role, "tokens") if value is not None]
    if len(tokens) < _START + WINDOW:
        return None
    return fmean(tokens[-WINDOW:]) >= 2 * fmean(tokens[:_START])


def chi2_rise(row: Row, role: str = "generator") -> float | None:
    """Largest chi2 over the first one above 1e-6."""
    return _rise([v for v in _series(row, role, "chi2") if v is not None and v > _LEAST_CHI2])


def ppl_rise(row: Row, role: str = "generator") -> float | None:
    """Largest perplexity over the first one."""
    return _rise([v for v in _series(row, role, "ppl") if v is not None])


def grad_norm_rise(row: Row, role: str = "generator") -> float | None:
    """Largest gradient norm over the first one."""
    policies = row["policies"]
    norms = policies.get(role, policies.get("shared", {})).get("grad_norm", ())
    return _rise([value for value in norms if value])


def floor_height(row: Row, policy: str = "generator") -> float | None:
    """Log of the median chi2 in the updates over that of the median movement, twice its k3."""
    values, moved = _rollout_chi2(row, policy), movement(row, policy)
    if not values or median(values) <= 0 or moved is None:
        return None
    return math.log(median(values)) - math.log(2) - moved


def chi2_trend(row: Row, policy: str = "generator") -> float | None:
    """Log of the chi2 in the updates, as the released code computes it: last window over first."""
    values = _rollout_chi2(row, policy)
    first, end = values[:WINDOW], values[-WINDOW:]
    if len(values) < 2 * WINDOW or min(fmean(first), fmean(end)) <= 0:
        return None
    return math.log(fmean(end) / fmean(first))


def _rollout_chi2(row: Row, policy: str) -> list[float]:
    series = row["policies"].get(policy, {}).get("rollout_chi2", ())
    return [value for value in series if value is not None]


def _best(halves: NDArray[np.float64]) -> float:
    """The best column: chosen by one row, its value from the other; ties and both ways averaged."""
    chosen = [halves[way] == halves[way].max() for way in (0, 1)]
    return fmean(float(halves[1 - way][chosen[way]].mean()) for way in (0, 1))


def _rise(values: Sequence[float]) -> float | None:
    return max(values) / values[0] if values else None


def _falls(row: Row) -> bool | None:
    size = fall(row)
    return None if size is None else size > FALL


def _log_seconds(row: Row) -> float | None:
    return math.log(row["seconds"]) if row["seconds"] else None


def _series(row: Row, role: str, name: str) -> Sequence[Any]:
    values: Sequence[Any] = row["roles"].get(role, {}).get(name, ())
    return values


MEASURES: Mapping[str, Callable[[Row], Value]] = {
    "lasting": lambda row: capture(row) == "lasting",
    "captured": lambda row: capture(row) != "none",
    "falls": _falls,
    "peak": peak,
    "last": last,
    "gain": gain,
    "movement": movement,
    "first_movement": first_movement,
    "coherence_excess": coherence_excess,
    "chi2_rise": chi2_rise,
    "floor_height": floor_height,
    "chi2_trend": chi2_trend,
    "ppl_rise": ppl_rise,
    "grad_norm_rise": grad_norm_rise,
    "log_seconds": _log_seconds,
}
"""Measures of one run alone, by name; ``grown:<role>`` and ``transfer_gain`` come on top."""


def measure(name: str, row: Row, results: Results) -> Value:
    """The value of a measure of ``row``."""
    if name == "transfer_gain":
        return transfer_gain(row, results)
    kind, colon, role = name.partition(":")
    return grown(row, role) if colon and kind == "grown" else MEASURES[name](row)
