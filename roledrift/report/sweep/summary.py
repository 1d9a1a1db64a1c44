"""One run in a few kilobytes: what the index of a folder needs of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from roledrift.errors import StoreError
from roledrift.judgement import Incident
from roledrift.records import RunHeader
from roledrift.report.judged_run import JudgedRun, thinned
from roledrift.report.model import RunReport
from roledrift.report.statuses import Status

_POINTS = 150


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
        settings: Flat configuration and header facts, to name what differs between runs.
        measured: What installed overviews read of the run, by their names.
    """

    key: str
    page: str
    name: str
    task: str
    scale: str
    workflow: str
    routing: str
    policy: str
    seed: int | None
    notes: Mapping[str, str]
    roles: tuple[str, ...]
    state: Status
    lead: str
    incident: Incident | None
    closed: bool
    steps: int
    validation: Mapping[int, float]
    reward: Mapping[int, float]
    settings: Mapping[str, str]
    measured: Mapping[str, Any]

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
        step = max(sorted(finite), key=lambda at: finite[at])
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


Result = tuple[Summary, RunReport] | Unreadable
"""A run that was read, or why it could not be."""


def readable(results: Iterable[Result]) -> tuple[list[tuple[Summary, RunReport]], list[Unreadable]]:
    """Separate the runs that were read from those that could not be.

    Raises:
        StoreError: If there are only others.
    """
    pairs: list[tuple[Summary, RunReport]] = []
    others: list[Unreadable] = []
    for result in results:
        if isinstance(result, Unreadable):
            others.append(result)
        else:
            pairs.append(result)
    if others and not pairs:
        more = f"; and {len(others) - 1} more unreadable runs" if len(others) > 1 else ""
        raise StoreError(others[0].why + more)
    return pairs, others


def summarise(
    judged: JudgedRun, run: RunReport, page: str = "", measured: Mapping[str, Any] | None = None
) -> Summary:
    """Summarise a run that has been loaded and reported."""
    header, workflow = judged.header, judged.header.workflow
    single = len(workflow.roles) == 1
    policy = "SA" if single else {"shared": "SP", "isolated": "IP"}.get(workflow.routing, "mixed")
    return Summary(
        key=judged.key,
        page=page,
        name=judged.name,
        task=header.task,
        scale=header.scale,
        workflow=workflow.name,
        routing=workflow.routing,
        policy=policy,
        seed=header.seed,
        notes=dict(header.notes),
        roles=judged.roles,
        state=run.state,
        lead=run.lead,
        incident=run.incident,
        closed=judged.state != "open",
        steps=len(judged.records),
        validation=dict(judged.validation),
        reward=thinned(judged.reward, _POINTS),
        settings=settings(judged.header),
        measured=measured or {},
    )


def settings(header: RunHeader) -> dict[str, str]:
    """Facts and configuration of a run, flat: name to value."""
    flat = {
        "task": header.task,
        "scale": header.scale,
        "workflow": header.workflow.name,
        "routing": header.workflow.routing,
        "seed": "" if header.seed is None else str(header.seed),
        "host": header.host,
    }
    flat |= {f"note: {name}": value for name, value in header.notes.items()}
    return flat | {f"config: {name}": value for name, value in _flat(header.config)}


def _flat(config: Mapping[str, object], path: str = "") -> list[tuple[str, str]]:
    flat: list[tuple[str, str]] = []
    for name, value in sorted(config.items()):
        place = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            flat += _flat(value, place)
        else:
            flat.append((place, str(value)))
    return flat
