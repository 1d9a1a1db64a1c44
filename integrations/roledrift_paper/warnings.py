"""What stands in the way of comparing the runs of a folder."""

from __future__ import annotations

from collections.abc import Sequence

from roledrift.report.model import Block, Note
from roledrift.report.numbers import number
from roledrift.report.sweep.summary import Summary
from roledrift_paper.grid import grid, stressed
from roledrift_paper.measured import of

_FEW = 3
_LISTED = 4
_OWN = frozenset({"seed", "note: run"})
"""What is every run's own. How a run was watched (``config: ``) does not change it either."""


def blocks(summaries: Sequence[Summary]) -> tuple[Block, ...]:
    """One note with all warnings; nothing if there is nothing to warn of."""
    lines = (
        *_stressed(summaries),
        *_seeds(summaries),
        *_unlike(summaries),
        *_peaks(summaries),
        *_rows(summaries),
        *_sources(summaries),
    )
    if not lines:
        return ()
    return (Note("Before comparing these runs:", lines),)


def _stressed(summaries: Sequence[Summary]) -> list[str]:
    """Runs that are in no mean."""
    names = [summary.name for summary in summaries if stressed(summary)]
    if not names:
        return []
    listed = ", ".join(names[:_LISTED]) + (
        f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    )
    return [
        f"Disturbed on purpose, as their headers say (note stress), and therefore left out of "
        f"table 1 and figures 2 to 4: {listed}."
    ]


def _unlike(summaries: Sequence[Summary]) -> list[str]:
    """Cells whose runs differ in more than their seeds."""
    differing = []
    for at, policies in grid(summaries).items():
        for policy, runs in policies.items():
            names = {name for run in runs for name in run.settings} - _OWN
            for name in sorted(name for name in names if not name.startswith("config: ")):
                values = list(dict.fromkeys(run.settings.get(name, "not set") for run in runs))
                if len(values) > 1:
                    short = name.removeprefix("note: ")
                    shown = " / ".join(values[:_LISTED])
                    differing.append(f"{at.label} {policy}: {short} {shown}")
    if not differing:
        return []
    more = f"; and {len(differing) - _LISTED} more" if len(differing) > _LISTED else ""
    return [
        "Runs of one cell are averaged as if they differed in the seed alone, but these differ in "
        f"more: {'; '.join(differing[:_LISTED])}{more}."
    ]


def _seeds(summaries: Sequence[Summary]) -> list[str]:
    sizes = {
        f"{at.label} {policy}": len(runs)
        for at, policies in grid(summaries).items()
        for policy, runs in policies.items()
    }
    single = sum(size < _FEW for size in sizes.values())
    if not single:
        return []
    return [
        f"{single} of {len(sizes)} cells rest on fewer than {_FEW} runs (seeds): a difference "
        "between two of them has no known error."
    ]


def _peaks(summaries: Sequence[Summary]) -> list[str]:
    counts = sorted({len(summary.validation) for summary in summaries if summary.validation})
    if not counts or counts[-1] < 2:
        return []
    text = (
        "A peak is the largest of several noisy evaluations, so it is biased upwards, and more so "
        "with more evaluations"
    )
    if len(counts) > 1:
        return [f"{text}; here runs have {counts[0]} to {counts[-1]} of them."]
    return [f"{text} ({counts[0]} per run here)."]


def _rows(summaries: Sequence[Summary]) -> list[str]:
    """Under one mini-batch size, a role with more answers gets more optimizer steps."""
    unequal = []
    for summary in summaries:
        sizes = {role: rows for role, rows in of(summary).rows.items() if rows > 0}
        if summary.policy == "IP" and sizes and max(sizes.values()) >= 1.5 * min(sizes.values()):
            listed = ", ".join(f"{role} {number(rows)}" for role, rows in sizes.items())
            unequal.append((summary.name, listed))
    if not unequal:
        return []
    name, listed = unequal[0]
    more = f", and {len(unequal) - 1} more runs" if len(unequal) > 1 else ""
    return [
        f"Roles with a policy of their own see different numbers of answers per step ({name}: "
        f"{listed}{more}), so at one mini-batch size they take different numbers of optimizer "
        "steps; statistics of their updates are not comparable as they stand."
    ]


def _sources(summaries: Sequence[Summary]) -> list[str]:
    sources = sorted(
        {course.source for summary in summaries for course in of(summary).chi2.values()}
    )
    if len(sources) < 2:
        return []
    return [
        f"chi² comes from different comparisons in different runs ({', '.join(sources)}); compare "
        "within one of them only."
    ]
