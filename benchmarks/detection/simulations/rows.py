"""What was told in all runs of one cell, as a row of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from benchmarks.detection.intervals import Median, Share
from benchmarks.detection.judging import Finding, Scale
from benchmarks.detection.scores import plain
from benchmarks.detection.simulations.trials import Tried

VALIDATIONS = 3
"""Validations after a fall within which it must be told."""


@dataclass(frozen=True)
class Row:
    """One cell.

    Attributes:
        cell: Its name.
        failing: Whether something is wrong in it.
        serious: Share of the runs with a failing finding or an input problem: in failing cells
            from the onset on, about the right role; in healthy ones at all.
        any: Likewise with suspicious findings.
        cause: Likewise with other findings than those about accuracy and reward.
        early: Failing cells: share with any finding before the onset.
        ahead: Share told about the right role before the accuracy falls, by other findings than
            those about accuracy; None where it does not fall. ``ahead_serious``: by failing
            findings or input problems.
        soon: Share in which a failing finding about accuracy comes within three validations of
            the fall; None where it does not fall.
        withheld: Share with a verdict withheld at the end.
        delay: Steps from the onset to the first finding about the right role.
        summary: What was told, most frequent first.
    """

    cell: str
    failing: bool
    serious: Share
    any: Share
    cause: Share
    early: Share | None
    ahead: Share | None
    ahead_serious: Share | None
    soon: Share | None
    withheld: Share
    delay: Median
    summary: str

    def plain(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "told" if field.name == "summary" else field.name: plain(getattr(self, field.name))
            for field in fields(self)
        }


def row_of(cell: str, runs: Sequence[Tried]) -> Row:
    """Sum up the runs of one cell."""
    first = runs[0].trial
    failing, falls = first.onset is not None, first.fall is not None
    leads = falls and all((run.trial.onset or 0) < (run.trial.fall or 0) for run in runs)
    named = [_counted(run) for run in runs]
    delays = [
        findings[0].step - (run.trial.onset or 0)
        for run, findings in zip(runs, named, strict=True)
        if findings
    ]
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(
            {f"{finding.severity}: {finding.name} ({finding.role})" for finding in run.findings}
        )
    return Row(
        cell=cell,
        failing=failing,
        serious=Share.of(
            any(finding.counts("serious") for finding in findings) for findings in named
        ),
        any=Share.of(bool(findings) for findings in named),
        cause=Share.of(any(not finding.outcome for finding in findings) for findings in named),
        early=Share.of(_early(run) for run in runs) if failing and (first.onset or 0) > 1 else None,
        ahead=Share.of(_ahead(run, "any") for run in runs) if leads else None,
        ahead_serious=Share.of(_ahead(run, "serious") for run in runs) if leads else None,
        soon=Share.of(_soon(run) for run in runs) if falls else None,
        delay=Median.of(delays if failing else []),
        withheld=Share.of(bool(run.withheld) for run in runs),
        summary="; ".join(f"{times}x {what}" for what, times in counts.most_common(6)),
    )


def _counted(run: Tried) -> list[Finding]:
    """Findings that count: in a healthy run all of them."""
    onset, roles = run.trial.onset, run.trial.roles
    if onset is None:
        return list(run.findings)
    return [finding for finding in run.findings if finding.step >= onset and finding.role in roles]


def _early(run: Tried) -> bool:
    return any(finding.step < (run.trial.onset or 0) for finding in run.findings)


def _ahead(run: Tried, scale: Scale) -> bool:
    fall = run.trial.fall or 0
    return any(
        finding.step < fall and not finding.outcome and finding.counts(scale)
        for finding in _counted(run)
    )


def _soon(run: Tried) -> bool:
    fall = run.trial.fall or 0
    last = fall + VALIDATIONS * max(run.trial.plan.validation, 1)
    return any(
        fall <= finding.step <= last and finding.outcome and finding.counts("serious")
        for finding in run.findings
    )
