"""One run in a few kilobytes: what a folder's index and the paper's tables need of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from roledrift import gram
from roledrift.errors import StoreError
from roledrift.judgement import Incident
from roledrift.report.model import RunReport
from roledrift.report.moods import Mood
from roledrift.report.texts.wording import Wording, wordings
from roledrift.report.view import View, thinned
from roledrift.sums import EVERYONE

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
class Summary:
    """One run.

    Attributes:
        key: Anchor of the run.
        page: Page that the anchor is on; empty for the page at hand.
        policy: ``SP`` for one shared policy, ``IP`` for one each, ``SA`` for a single role.
        lead: The beginning of the headline: the cause alone.
        incident: The incident that the headline tells; None if nothing was found.
        closed: False for a run that crashed, was killed or is still running.
        validation: Step to validation accuracy.
        chi2: Per role, and ``*`` for all together; likewise ``ppl``, ``norm`` (of gradients).
        entropy: Of all roles together; None if not measured.
        rows: Answers per step and role, the median; what a mini-batch count rests on.
        settings: Flat configuration and header facts, to name what differs between runs.
        wording: Texts in numbers at up to three checkpoints.
    """

    key: str
    page: str
    name: str
    path: str
    task: str
    scale: str
    workflow: str
    routing: str
    policy: str
    seed: int | None
    notes: Mapping[str, str]
    roles: tuple[str, ...]
    state: Mood
    headline: str
    lead: str
    incident: Incident | None
    closed: bool
    steps: int
    last: int | None
    validation: Mapping[int, float]
    reward: Mapping[int, float]
    chi2: Mapping[str, Course]
    ppl: Mapping[str, Course]
    norm: Mapping[str, Course]
    entropy: Course | None
    rows: Mapping[str, float]
    settings: Mapping[str, str]
    wording: tuple[Wording, ...]

    @property
    def href(self) -> str:
        """Link to the run."""
        return f"{self.page}#{self.key}"

    @property
    def best(self) -> tuple[int, float] | None:
        """Step and value of the best validation; the first of equals."""
        finite = {s: v for s, v in self.validation.items() if math.isfinite(v)}
        if not finite:
            return None
        step = max(sorted(finite), key=lambda one: finite[one])
        return step, finite[step]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A run that could not be read: one row of the table of runs, and not the end of the report.

    Attributes:
        path: Its directory.
        why: What was wrong with it.
    """

    path: str
    why: str


def readable(
    found: Iterable[tuple[Summary, RunReport] | Unreadable],
) -> tuple[list[tuple[Summary, RunReport]], list[Unreadable]]:
    """The runs that were read, and the others.

    Raises:
        StoreError: If there are only others.
    """
    pairs: list[tuple[Summary, RunReport]] = []
    others: list[Unreadable] = []
    for one in found:
        if isinstance(one, Unreadable):
            others.append(one)
        else:
            pairs.append(one)
    if others and not pairs:
        more = f"; and {len(others) - 1} more unreadable runs" if len(others) > 1 else ""
        raise StoreError(others[0].why + more)
    return pairs, others


def summarise(view: View, run: RunReport, page: str = "") -> Summary:
    """The summary of a run that is loaded and reported."""
    header, workflow = view.header, view.header.workflow
    single = len(workflow.roles) == 1
    policy = "SA" if single else {"shared": "SP", "isolated": "IP"}.get(workflow.routing, "mixed")
    groups = (*view.roles, EVERYONE)
    chi2 = {group: _first_of(view, group, CHI2) for group in groups}
    ppl = {group: _first_of(view, group, PPL) for group in groups}
    return Summary(
        key=view.key,
        page=page,
        name=view.name,
        path=str(view.path),
        task=header.task,
        scale=header.scale,
        workflow=workflow.name,
        routing=workflow.routing,
        policy=policy,
        seed=header.seed,
        notes=dict(header.notes),
        roles=view.roles,
        state=run.state,
        headline=run.headline,
        lead=run.lead,
        incident=run.incident,
        closed=view.state != "open",
        steps=len(view.records),
        last=view.records[-1].step if view.records else None,
        validation=dict(view.validation),
        reward=thinned(view.reward, _POINTS),
        chi2={group: one for group, one in chi2.items() if one is not None},
        ppl={group: one for group, one in ppl.items() if one is not None},
        norm=_norms(view),
        entropy=course("entropy", view.curve(EVERYONE, "entropy")),
        rows=_rows(view),
        settings=_settings(view),
        wording=wordings(view),
    )


def course(source: str, curve: Mapping[int, float]) -> Course | None:
    """How a curve went; None without a finite value."""
    finite = {step: value for step, value in sorted(curve.items()) if math.isfinite(value)}
    if not finite:
        return None
    steps = list(finite)
    peak = max(steps, key=lambda step: finite[step])
    low = min(finite.values())
    return Course(source, finite[steps[0]], finite[peak], peak, low, thinned(finite, _POINTS))


def _first_of(view: View, group: str, names: tuple[str, ...]) -> Course | None:
    found = (course(name, view.curve(group, name)) for name in names)
    return next((one for one in found if one is not None), None)


def _norms(view: View) -> dict[str, Course]:
    """Gradient norm per role, and of a policy's whole gradient under the policy's name.

    Where no gradients were measured, the norms that the trainer logged: per role, and for all
    roles together under ``*``.
    """
    curves: dict[str, dict[int, float]] = {}
    for record in view.records:
        for measured in record.gradients:
            roles = gram.by_role(measured)
            for role, norm in zip(roles.labels, gram.norms(roles).tolist(), strict=True):
                curves.setdefault(role, {})[record.step] = norm
            curves.setdefault(f"policy {measured.policy}", {})[record.step] = gram.total_norm(roles)
    found = {name: course("gradient norm", curve) for name, curve in curves.items()}
    if not curves:
        groups = (*view.roles, EVERYONE)
        found = {name: course("grad_norm", view.curve(name, "grad_norm")) for name in groups}
    return {name: one for name, one in found.items() if one is not None}


def _rows(view: View) -> dict[str, float]:
    found = {}
    for role in view.roles:
        stats = (record.stat(role, "length") for record in view.records)
        counts = sorted(stat.n for stat in stats if stat is not None)
        if counts:
            found[role] = counts[len(counts) // 2]
    return found


def _settings(view: View) -> dict[str, str]:
    header = view.header
    found = {
        "task": header.task,
        "scale": header.scale,
        "workflow": header.workflow.name,
        "routing": header.workflow.routing,
        "seed": "" if header.seed is None else str(header.seed),
        "host": header.host,
    }
    found |= {f"note: {name}": value for name, value in header.notes.items()}
    return found | {f"config: {name}": value for name, value in _flat(header.config)}


def _flat(config: Mapping[str, object], path: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in sorted(config.items()):
        place = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            found += _flat(value, place)
        else:
            found.append((place, str(value)))
    return found
