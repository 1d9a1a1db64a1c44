"""Several sources of one experiment, read as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from roledrift.ingest.form import Facts, Format, Job, Source
from roledrift.ingest.rows import Events, Series, SpanRow, StepDone
from roledrift.ingest.tree import Found
from roledrift.records import NOTE_SET

_OF_LOG = "val_accuracy_of_log"
"""Validation that the trainer logged, where checkpoints were evaluated on other problems."""

_MEASURED = frozenset({"length", "truncated", "correct", "reward", "advantage", "zero_variance"})
"""What an evaluation measures itself: the log says the same of the training's rollouts."""


def united(run: Found) -> tuple[Format, str]:
    """A format that reads all sources of a run, and what it is.

    Outputs are taken from the first source alone, numbers from all; where two say the same number
    of a step, that of the first counts.
    """
    first, *others = run.sources
    reason = first.form.title
    if not others:
        return replace(first.form, read=lambda job: _named(run, first, job)), reason

    def read(job: Job) -> Events:
        logged: dict[int, list[Series]] = {}
        facts_of: list[tuple[Source, Facts]] = []
        for other in others:
            facts = Facts()
            sub = replace(job, source=other.path, part=other.part, facts=facts)
            for series in _series(other.form.read(sub), evaluated=first.form.evaluates):
                logged.setdefault(series.step, []).append(series)
            facts_of.append((other, facts))
        at: int | None = None
        for event in _named(run, first, job):
            if event.step != at:
                yield from logged.pop(event.step, ())
                at = event.step
            yield event
        for step in sorted(logged):
            yield from logged[step]
            yield StepDone(step)
        _take_over(job.facts, facts_of)

    forms = " + ".join(source.form.name for source in run.sources)
    return replace(first.form, name=forms, read=read), f"{reason}, and {len(others)} more"


def _named(run: Found, source: Source, job: Job) -> Events:
    main = replace(job, source=source.path, part=source.part)
    yield from source.form.read(main)
    if source.describe is not None and not job.facts.scale:
        source.describe(job.facts)
    job.facts.run = run.name


def _series(events: Events, *, evaluated: bool) -> Iterator[Series]:
    """Numbers alone; beside an evaluation, without those of the same name on other problems."""
    for event in events:
        if isinstance(event, SpanRow | StepDone):
            continue
        if not evaluated:
            yield event
            continue
        groups = {
            group: {name: value for name, value in stats.items() if name not in _MEASURED}
            for group, stats in event.groups.items()
        }
        totals = {
            _OF_LOG if name == "val_accuracy" else name: value
            for name, value in event.totals.items()
        }
        yield replace(event, groups=groups, totals=totals)


def _take_over(facts: Facts, facts_of: Sequence[tuple[Source, Facts]]) -> None:
    """What only another source says; what is about its own numbers stays with it."""
    for _, other in facts_of:
        facts.task = facts.task or other.task
        facts.scale = facts.scale or other.scale
        facts.workflow = facts.workflow or other.workflow
        facts.seed = other.seed if facts.seed is None else facts.seed
        facts.routing = other.routing if facts.routing is None else facts.routing
        for name, note in other.notes.items():
            if name not in ("roles", NOTE_SET):
                facts.notes.setdefault(name, note)
    facts.notes["also read"] = "; ".join(
        f"numbers of {source.form.name} {source.path}"
        + (f" ({source.part[-1]})" if source.part else "")
        for source, _ in facts_of
    )
