"""A foreign log as a run directory."""

from __future__ import annotations

import json
import pickle
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from roledrift import __version__
from roledrift.config import Config
from roledrift.errors import StoreError
from roledrift.ingest import gaps
from roledrift.ingest.collect import (
    Collector,
    Tally,
    in_characters,
    of_the_only_role,
    without_single_slots,
)
from roledrift.ingest.form import Facts, Format, Job
from roledrift.ingest.roles import RoleMap, workflow_of
from roledrift.measure.milestones import ONE_OF_THE_FIRST, milestones
from roledrift.records import RunHeader, Sample, StepRecord
from roledrift.store.writer import RunWriter
from roledrift.workflow import Routing, Workflow

_TOLD = ("rules", "start", "also read", "roles", "lengths", "routing", "not in it", "next time")
"""Notes that a person is told at once."""

_MOST_IN_MEMORY = 50_000_000


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did, or would do."""

    source: str
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
            "source": self.source,
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
    recognised: tuple[Format, str],
    job: Job,
    out: Path | None,
    *,
    routing: Routing | None = None,
) -> Imported:
    """Read a foreign log and write it as a run.

    The run directory appears when everything has been read: an import that fails leaves nothing.

    Raises:
        StoreError: If ``out`` is taken, or nothing in the source can be used.
        ConfigError: If the mapping or the map of roles is wrong.
    """
    form, reason = recognised
    if out is not None and (out / "run.json").exists():
        raise StoreError(f"{out}: a run is here already; give another directory")
    collector = Collector(job.ledger, count=job.count)
    # Steps wait until the whole log has been read; those of a large one on the disk.
    with tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY) as waiting:
        for step in _steps(form, job, collector):
            pickle.dump(step, waiting, pickle.HIGHEST_PROTOCOL)
        tally, facts = collector.tally, job.facts
        if not tally.steps:
            odd = "".join(f"; {what}: {times}" for what, times in job.ledger.counts.items())
            raise StoreError(f"{job.shown}: read as {form.name!r}, but it holds no step{odd}")
        slots = dict(tally.slots) or {}
        for role, n in facts.slots.items():
            slots[role] = max(slots.get(role, 1), n)
        workflow = workflow_of(slots, routing or facts.routing, facts.workflow)
        if not routing and facts.routing is None and len(workflow.roles) > 1:
            facts.notes["routing"] = "not in the source; taken for shared unless --routing says so"
        alone = len(workflow.roles) == 1
        facts.notes.update(_lengths(tally, job, alone=alone) | _gaps(form, tally, alone=alone))
        facts.notes.update(job.roles.notes())
        notes = _notes(form, reason, job)
        done = Imported(
            job.shown, out, form.name, reason, workflow, tally, job.ledger.counts, notes
        )
        if out is not None:
            _write(out, _header(done, facts), waiting, tally)
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
    held |= {"length"} if _in_characters(tally, alone=alone) else set()
    return gaps.notes(gaps.missing(held), form.supplies, held, tally.together)


def _in_characters(tally: Tally, *, alone: bool) -> bool:
    """Whether lengths become characters; not where the log says the tokens of the only role."""
    return tally.in_characters and not (alone and tally.logged_length)


def _lengths(tally: Tally, job: Job, *, alone: bool) -> dict[str, str]:
    if job.count is not None:
        return {"lengths": f"in tokens of {job.tokenizer}, counted here"}
    if not _in_characters(tally, alone=alone):
        return {}
    return {
        "lengths": "in characters, for the source has no token counts; --tokenizer NAME counts them"
    }


def _notes(form: Format, reason: str, job: Job) -> dict[str, str]:
    imported = {
        "imported from": f"{job.shown} as {form.name} ({reason})",
        **job.facts.notes,
        **job.ledger.notes(),
    }
    return {name: str(note)[:500] for name, note in imported.items()}


def _header(done: Imported, facts: Facts) -> RunHeader:
    name = facts.run or Path(done.source).resolve().name
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


def _write(out: Path, header: RunHeader, waiting: IO[bytes], tally: Tally) -> None:
    existed = out.exists()
    if existed and any(out.iterdir()):
        raise StoreError(f"{out}: this directory holds something else; give an empty or a new one")
    slots = {role.name: role.slots for role in header.workflow.roles}
    kept_whole = milestones(sorted(tally.with_texts), tally.validation)
    try:
        writer = RunWriter(out, header, writer="import")
        waiting.seek(0)
        for _ in range(tally.steps):
            record, samples = pickle.load(waiting)
            record = _attributed(without_single_slots(record, slots), header.workflow)
            if _in_characters(tally, alone=len(slots) == 1):
                record = in_characters(record, everyone=not tally.logged_length)
            writer.write_step(record)
            if samples:
                kept = samples if record.step in kept_whole else _few(samples)
                policies = {text.role: header.workflow.policy_of(text.role) for text in kept}
                writer.write_samples(
                    record.step, [replace(text, policy=policies[text.role]) for text in kept]
                )
        writer.close()
    except OSError:
        if not existed:
            shutil.rmtree(out, ignore_errors=True)
        raise


def _few(samples: Sequence[Sample]) -> list[Sample]:
    """The texts of a step whose first problems are not counted: without those kept for that."""
    return [text for text in samples if text.flags != (ONE_OF_THE_FIRST,)]


def _attributed(record: StepRecord, workflow: Workflow) -> StepRecord:
    return of_the_only_role(record, workflow.role_names[0]) if len(workflow.roles) == 1 else record


def job_for(
    source: Path,
    *,
    roles: str = "",
    mapping: Path | None = None,
    tokenizer: str = "",
    address: str = "",
) -> Job:
    """An import of ``source``.

    Raises:
        ConfigError: If the map of roles or the mapping file is wrong, or there is no such
            tokenizer.
    """
    from roledrift.ingest.table import load_mapping
    from roledrift.ingest.tokens import counter

    return Job(
        source=source,
        roles=RoleMap(roles),
        mapping=None if mapping is None else load_mapping(mapping),
        tokenizer=tokenizer,
        address=address,
        count=counter(tokenizer) if tokenizer else None,
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


def as_json(done: Iterable[Imported], failed: Mapping[str, str]) -> str:
    """Imports as one JSON document."""
    body = {"runs": [run.plain() for run in done], "failed": dict(failed)}
    return json.dumps({"schema": "roledrift.import/2"} | body, indent=2)
