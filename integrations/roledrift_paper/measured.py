"""What the tables of the paper need of one run: movement, gradients and texts in numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from roledrift import gram
from roledrift.report.judged_run import JudgedRun, thinned
from roledrift.report.sweep.overviews import PAPER
from roledrift.report.sweep.summary import Summary
from roledrift.sums import EVERYONE
from roledrift_paper.texts import Wording, wordings

CHI2 = ("rollout.chi2", "old.chi2", "update.chi2")
PPL = ("rollout.training_ppl", "old.training_ppl", "ppl")
_POINTS = 150


@dataclass(frozen=True, slots=True)
class Course:
    """How one statistic went.

    Attributes:
        source: Name of the statistic in the records.
        first: First finite value.
        peak: Largest finite value, reached at ``peak_step``; likewise ``low``.
        curve: Step to value, at most 150 points.
    """

    source: str
    first: float
    peak: float
    peak_step: int
    low: float
    curve: Mapping[int, float]

    @property
    def ratio(self) -> float:
        """Peak over first; NaN if the first value is not above 0."""
        return self.peak / self.first if self.first > 0 else math.nan


@dataclass(frozen=True, slots=True)
class Measured:
    """One run.

    Attributes:
        chi2: Per role, and ``*`` for all together; likewise ``ppl``, ``norm`` (of gradients).
        entropy: Of all roles together; None if not measured.
        rows: Answers per step and role, the median; what a mini-batch count rests on.
        wording: Texts in numbers at up to three checkpoints.
    """

    chi2: Mapping[str, Course]
    ppl: Mapping[str, Course]
    norm: Mapping[str, Course]
    entropy: Course | None
    rows: Mapping[str, float]
    wording: tuple[Wording, ...]


def of(summary: Summary) -> Measured:
    """What :func:`measure` read of the run behind a summary."""
    measured: Measured = summary.measured[PAPER]
    return measured


def measure(run: JudgedRun) -> Measured:
    """Read one run."""
    return Measured(
        chi2=_courses(run, CHI2),
        ppl=_courses(run, PPL),
        norm=_norms(run),
        entropy=course("entropy", run.curve(EVERYONE, "entropy")),
        rows=_rows(run),
        wording=wordings(run),
    )


def _courses(run: JudgedRun, names: tuple[str, ...]) -> dict[str, Course]:
    """The first of some statistics that was measured, per role and for all together."""
    courses = {group: _first_of(run, group, names) for group in (*run.roles, EVERYONE)}
    return {group: course for group, course in courses.items() if course is not None}


def course(source: str, curve: Mapping[int, float]) -> Course | None:
    """How a curve went; None without a finite value."""
    finite = {step: value for step, value in sorted(curve.items()) if math.isfinite(value)}
    if not finite:
        return None
    steps = list(finite)
    peak = max(steps, key=lambda step: finite[step])
    low = min(finite.values())
    return Course(source, finite[steps[0]], finite[peak], peak, low, thinned(finite, _POINTS))


def _first_of(run: JudgedRun, group: str, names: tuple[str, ...]) -> Course | None:
    courses = (course(name, run.curve(group, name)) for name in names)
    return next((measured for measured in courses if measured is not None), None)


def _norms(run: JudgedRun) -> dict[str, Course]:
    """Gradient norm per role, and of a policy's whole gradient under the policy's name.

    Where no gradients were measured, the norms that the trainer logged: per role, and for all
    roles together under ``*``.
    """
    curves: dict[str, dict[int, float]] = {}
    for record in run.records:
        for measured in record.gradients:
            roles = gram.by_role(measured)
            for role, norm in zip(roles.labels, gram.norms(roles).tolist(), strict=True):
                curves.setdefault(role, {})[record.step] = norm
            curves.setdefault(f"policy {measured.policy}", {})[record.step] = gram.total_norm(roles)
    courses = {name: course("gradient norm", curve) for name, curve in curves.items()}
    if not curves:
        groups = (*run.roles, EVERYONE)
        courses = {name: course("grad_norm", run.curve(name, "grad_norm")) for name in groups}
    return {name: measured for name, measured in courses.items() if measured is not None}


def _rows(run: JudgedRun) -> dict[str, float]:
    rows = {}
    for role in run.roles:
        stats = (record.stat(role, "length") for record in run.records)
        counts = sorted(stat.n for stat in stats if stat is not None)
        if counts:
            rows[role] = counts[len(counts) // 2]
    return rows
