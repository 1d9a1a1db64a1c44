"""A foreign log as a run directory."""

from __future__ import annotations

import json
import pickle
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from roledrift import __version__
from roledrift.config import Config
from roledrift.errors import StoreError
from roledrift.ingest import gaps
from roledrift.ingest.collect import Collector, Tally, of_the_only_role, without_single_slots
from roledrift.ingest.form import Facts, Format, Job
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.roles import RoleMap, workflow_of
from roledrift.records import RunHeader, Sample, StepRecord
from roledrift.store.writer import RunWriter
from roledrift.workflow import Routing, Workflow

_TOLD = ("roles", "routing", "not in it", "next time")
"""Notes that a person is told at once."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did, or would do.

    Attributes:
        out: Run directory; None for a dry run.
        format: Name of the format.
        reason: Why the source was taken for it.
        columns: Number of spans with each column.
        odd: What was skipped or odd, with how often.
        notes: As in the run's header.
    """

    source: Path
    out: Path | None
    format: str
    reason: str
    workflow: Workflow
    tally: Tally
    odd: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """As JSON-ready values."""
        return {
            "source": str(self.source),
            "out": None if self.out is None else str(self.out),
            "format": self.format,
            "reason": self.reason,
            "workflow": asdict(self.workflow) | {"routing": self.workflow.routing},
            "steps": self.tally.steps,
            "first_step": self.tally.first,
            "last_step": self.tally.last,
            "spans": self.tally.spans,
            "columns": {name: n for name, n in sorted(self.tally.columns.items()) if n},
            "odd": dict(self.odd),
            "notes": dict(self.notes),
        }


def import_run(
    found: tuple[Format, str],
    job: Job,
    out: Path | None,
    *,
    routing: Routing | None = None,
) -> Imported:
    """Read a foreign log and write it as a run.

    The run directory appears when everything has been read: an import that fails leaves nothing.

    Args:
        found: The format and why; what ``sniff`` gives.
        job: What to read and how.
        out: Run directory; None reads everything and writes nothing.
        routing: Overrides what the source says.

    Raises:
        StoreError: If ``out`` is taken, or nothing in the source can be used.
        ConfigError: If the mapping or the map of roles is wrong.
    """
    form, reason = found
    if out is not None and (out / "run.json").exists():
        raise StoreError(f"{out}: a run is here already; give another directory")
    collector = Collector(job.ledger)
    with tempfile.TemporaryFile() as spool:
        for record, samples in _steps(form, job, collector):
            pickle.dump((record, samples), spool, protocol=5)
        tally, facts = collector.tally, job.facts
        if not tally.steps:
            odd = "".join(f"; {what}: {times}" for what, times in job.ledger.counts.items())
            raise StoreError(f"{job.source}: read as {form.name!r}, but it holds no step{odd}")
        slots = dict(tally.slots) or {}
        for role, n in facts.slots.items():
            slots[role] = max(slots.get(role, 1), n)
        workflow = workflow_of(slots, routing or facts.routing, facts.workflow)
        if not routing and facts.routing is None and len(workflow.roles) > 1:
            facts.notes["routing"] = "not in the source; taken for shared unless --routing says so"
        facts.notes.update(_gaps(form, tally, alone=len(workflow.roles) == 1))
        notes = _notes(form, reason, job)
        done = Imported(
            job.source, out, form.name, reason, workflow, tally, job.ledger.counts, notes
        )
        if out is not None:
            _write(out, _header(done, facts), spool, tally.steps)
    return done


def _steps(
    form: Format, job: Job, collector: Collector
) -> Iterator[tuple[StepRecord, list[Sample]]]:
    for event in form.read(job):
        yield from collector.take(event)
    yield from collector.finish()


def _gaps(form: Format, tally: Tally, *, alone: bool) -> dict[str, str]:
    held = tally.held | {name for name, n in tally.columns.items() if n}
    held |= tally.together if alone else set()
    return gaps.notes(gaps.missing(held), form.supplies, held)


def _notes(form: Format, reason: str, job: Job) -> dict[str, str]:
    imported = {
        "imported from": f"{job.source} as {form.name} ({reason})",
        **job.facts.notes,
        **job.ledger.notes(),
    }
    return {name: str(note)[:500] for name, note in imported.items()}


def _header(done: Imported, facts: Facts) -> RunHeader:
    name = facts.run or done.source.resolve().name
    return RunHeader(
        run=name,
        workflow=done.workflow,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        host=facts.host,
        task=facts.task,
        scale=facts.scale,
        seed=facts.seed,
        config=asdict(Config()),
        versions={"roledrift": __version__},
        notes=done.notes,
    )


def _write(out: Path, header: RunHeader, spool: IO[bytes], steps: int) -> None:
    there = out.exists()
    if there and any(out.iterdir()):
        raise StoreError(f"{out}: this directory holds something else; give an empty or a new one")
    slots = {role.name: role.slots for role in header.workflow.roles}
    try:
        writer = RunWriter(out, header, writer="import")
        spool.seek(0)
        for _ in range(steps):
            # A temporary file that this process has written itself, and that nobody else can open.
            record, samples = pickle.load(spool)
            writer.write_step(_attributed(without_single_slots(record, slots), header.workflow))
            if samples:
                policies = {one.role: header.workflow.policy_of(one.role) for one in samples}
                writer.write_samples(
                    record.step, [replace(one, policy=policies[one.role]) for one in samples]
                )
        writer.close()
    except OSError:
        if not there:
            shutil.rmtree(out, ignore_errors=True)
        raise


def _attributed(record: StepRecord, workflow: Workflow) -> StepRecord:
    return of_the_only_role(record, workflow.role_names[0]) if len(workflow.roles) == 1 else record


def job_for(
    source: Path, *, roles: str = "", mapping: Path | None = None, ledger: Ledger | None = None
) -> Job:
    """An import of ``source``.

    Args:
        source: File or folder.
        roles: As ``--roles`` takes it.
        mapping: Mapping file for the ``table`` format.
        ledger: Where to count; a new one by default.

    Raises:
        ConfigError: If the map of roles or the mapping file is wrong.
    """
    from roledrift.ingest.table import load_mapping

    return Job(
        source=source,
        roles=RoleMap(roles),
        mapping=None if mapping is None else load_mapping(mapping),
        ledger=ledger or Ledger(),
    )


def summary(done: Imported) -> str:
    """One line for people."""
    odd = sum(done.odd.values())
    roles = ", ".join(
        f"{role.name} x{role.slots}" if role.slots > 1 else role.name
        for role in done.workflow.roles
    )
    steps = "1 step" if done.tally.steps == 1 else f"{done.tally.steps} steps"
    return (
        f"{done.format}: {steps} ({done.tally.first} to {done.tally.last}), "
        f"{done.tally.spans} spans of {roles}; {done.workflow.routing} policies"
        + (f"; {odd} records skipped or odd" if odd else "")
    )


def remarks(done: Imported) -> list[str]:
    """What a person should know of an import: oddities, what is missing, what would supply it."""
    odd = [f"{what}: {times} times" for what, times in done.odd.items()]
    return odd + [f"{name}: {done.notes[name]}" for name in _TOLD if name in done.notes]


def as_json(done: Imported) -> str:
    """The import as one JSON document."""
    return json.dumps({"schema": "roledrift.import/1"} | done.plain(), indent=2)
