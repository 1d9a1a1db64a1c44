"""What roledrift told about the runs, held against what happened in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.detection.captures import onset_of
from benchmarks.detection.intervals import Share
from benchmarks.reproduction.measures import FALL, capture, fall
from benchmarks.reproduction.outcomes import Row

CAPTURES = (
    "leakage",
    "capture",
    "parser",
    "confounders",
    "dose",
    "voters",
    "parser-prose",
    "tag",
    "no-prose",
)
"""Experiments in which a capture of the aggregator can be seen from its terse form."""


@dataclass(frozen=True, slots=True)
class Told:
    """Runs to which one thing happened, and what was told about them.

    Attributes:
        what: What happened, in words.
        runs: How many.
        named: Runs with the finding that names it.
        delay: Median of iterations from its onset to the alert; None if that is not defined.
        failing: Runs whose outcome is failing or an input problem.
        any: Runs about which anything was told.
    """

    what: str
    runs: int
    named: Share
    delay: float | None
    failing: Share
    any: Share


def told_of_captures(rows: Sequence[Row]) -> list[Told]:
    """By what became of the aggregator's terse form.

    Runs that kept it are apart by routing: a policy of its own cannot be captured.
    """
    chosen = [row for row in rows if row["experiment"] in CAPTURES]
    kept = [row for row in chosen if capture(row) == "none"]
    groups = {
        "lost for good": [row for row in chosen if capture(row) == "lasting"],
        "lost for a while": [row for row in chosen if capture(row) == "passing"],
        "kept, shared policy": [row for row in kept if "shared" in row["policies"]],
        "kept, isolated policies": [row for row in kept if "shared" not in row["policies"]],
    }
    return [
        _group(f"aggregator's form {words}", group, _named, _delay)
        for words, group in groups.items()
    ]


def least_form_kept(rows: Sequence[Row], *, named: bool) -> list[float]:
    """How far the terse form sank of aggregators that share a policy and did not lose it.

    Args:
        rows: Of all experiments.
        named: Of the runs in which a capture was named, or of the others.

    Returns:
        Per run the lowest mean of three iterations in a row, over that of the first three.
    """
    series = [
        np.asarray(row["roles"]["aggregator"]["terse"], dtype=np.float64)
        for row in rows
        if row["experiment"] in CAPTURES
        and capture(row) == "none"
        and "shared" in row["policies"]
        and _named(row) == named
    ]
    means = [np.lib.stride_tricks.sliding_window_view(terse, 3).mean(1) for terse in series]
    return [float(mean.min() / mean[0]) for mean in means if mean[0]]


def told_of_falls(rows: Sequence[Row]) -> list[Told]:
    """By whether the training accuracy fell."""
    sizes = [(row, fall(row)) for row in rows]
    groups = {
        f"accuracy fell by more than {FALL:.2f}": [
            r for r, size in sizes if size is not None and size > FALL
        ],
        "accuracy did not fall": [r for r, size in sizes if size is not None and size <= FALL],
    }
    return [_group(words, group, _noticed, lambda _: None) for words, group in groups.items()]


def _group(
    what: str,
    rows: Sequence[Row],
    named: Callable[[Row], bool],
    delay: Callable[[Row], float | None],
) -> Told:
    delays = [value for row in rows if (value := delay(row)) is not None]
    return Told(
        what,
        len(rows),
        Share.of(named(row) for row in rows),
        median(delays) if delays else None,
        Share.of(row["told"]["outcome"] in ("failing", "input problem") for row in rows),
        Share.of(bool(row["told"]["incidents"]) for row in rows),
    )


def _named(row: Row) -> bool:
    """Whether an incident names a capture of the aggregator, as its cause or a consequence."""
    pairs = [
        pair
        for incident in row["told"]["incidents"]
        for pair in ([incident["role"], incident["finding"]], *incident["consequences"])
    ]
    return ["aggregator", "sp_role_capture"] in pairs


def _delay(row: Row) -> float | None:
    onset = onset_of(row["roles"]["aggregator"]["terse"])
    steps = [
        step
        for role, finding, _, step, _ in row["told"]["alerts"]
        if (role, finding) == ("aggregator", "sp_role_capture")
    ]
    return min(steps) - onset if steps and onset is not None else None


def _noticed(row: Row) -> bool:
    return row["told"]["outcome"] in ("failing", "suspicious")
