"""rllm's training-time episode log: ``<mode>_step_<S>_epoch_<E>/episode_hash<...>_id<...>.json``.

Text by role, rewards, no tokens and no log-probabilities. Written at generation, so episodes that
were filtered out before training are in it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from roledrift.errors import StoreError
from roledrift.ingest import gaps
from roledrift.ingest.form import Claim, Format, Job, Source
from roledrift.ingest.keys import Translator, passed_note
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import document, documents, walk
from roledrift.ingest.rows import Events, Series, SpanRow, StepDone
from roledrift.ingest.tree import named_by
from roledrift.ingest.unpacking import matching
from roledrift.ingest.values import integer, section
from roledrift_importers.episodes import Broadcast, spans_of

_FOLDER = re.compile(r"(train|val)_step_(\d{1,12})_epoch_(\d{1,12})\Z")
_DEPTH = 4


def _sniff(path: Path) -> str | None:
    if not path.is_dir():
        return None
    for folder, files in walk(path, depth=_DEPTH, limit=20_000):
        if _FOLDER.match(folder.name) and any(name.startswith("episode_") for name in files):
            return f"rllm episode files under {folder.name}/"
    return None


def _claim(form: Format, folder: Path, below: list[Path]) -> Claim:
    """The episode log that a folder of a tree is."""
    steps = [
        folder_below
        for folder_below in below
        if _FOLDER.match(folder_below.name) and any(folder_below.glob("episode_*"))
    ]
    if not steps:
        return [], below
    return [Source(form, folder, named_by(folder), steps=len(steps))], []


def _read(job: Job) -> Events:
    steps, validations = _folders(job.source, job.ledger)
    job.facts.host = "rllm"
    job.facts.notes["episodes"] = "as generated, before any filtering; no token counts"
    logged = _logged(job)
    broadcast = Broadcast()
    for step in sorted(set(steps) | set(validations) | set(logged)):
        if step in logged:
            yield logged[step]
        accuracy = _accuracy(job, validations.get(step, []))
        if accuracy is not None:
            yield Series(step, totals={"val_accuracy": accuracy})
        for folder in sorted(steps.get(step, [])):
            yield from _spans(folder, step, job, broadcast)
        yield StepDone(step)
    job.facts.notes.update(broadcast.notes())


def _folders(source: Path, ledger: Ledger) -> tuple[dict[int, list[Path]], dict[int, list[Path]]]:
    """Training and validation folders by step."""
    steps: dict[int, list[Path]] = {}
    validations: dict[int, list[Path]] = {}
    parents = set()
    for folder, _ in walk(source, depth=_DEPTH, ledger=ledger):
        match = _FOLDER.match(folder.name)
        if match:
            parents.add(folder.parent)
            target = steps if match[1] == "train" else validations
            target.setdefault(int(match[2]), []).append(folder)
    if len(parents) > 1:
        names = ", ".join(sorted(str(parent.relative_to(source)) for parent in parents)[:6])
        raise StoreError(f"{source}: holds {len(parents)} episode logs ({names}); import one")
    return steps, validations


def _spans(folder: Path, step: int, job: Job, broadcast: Broadcast) -> Iterator[SpanRow]:
    for file in matching(folder, "episode_*.json"):
        body = document(file, job.ledger)
        if body is None:
            job.ledger.skip("episode file skipped", file.name, step=step)
            continue
        stated = integer(body.get("training_step"))
        if stated is not None and stated != step:
            job.ledger.skip("episode of another step", file.name, step=step)
        yield from spans_of(body, step, f"{folder.name}/{file.name}", job, broadcast)


def _accuracy(job: Job, folders: list[Path]) -> float | None:
    outcomes = []
    for folder in folders:
        for file in matching(folder, "episode_*.json"):
            body = document(file, job.ledger) or {}
            if isinstance(body.get("is_correct"), bool):
                outcomes.append(body["is_correct"])
    return sum(outcomes) / len(outcomes) if outcomes else None


def _logged(job: Job) -> dict[int, Series]:
    """Rows ``{"step", "data"}`` of a file logger beside the episodes."""
    translate = Translator()
    series: dict[int, Series] = {}
    for file in sorted(job.source.glob("*.jsonl")):
        for where, row in documents(file, job.ledger):
            step = integer(row.get("step"))
            if step is None or not isinstance(row.get("data"), dict):
                job.ledger.skip("row that is no {step, data}", where)
                continue
            groups, totals = translate(section(row, "data"))
            series[step] = Series(step, groups, totals, {"source": "foreign series"})
    if translate.roles:
        job.facts.routing = "isolated"
    job.facts.notes.update(passed_note(translate.passed))
    return series


_BACKEND = "measured live with roledrift_rllm (docs/integrations/multi_agent.md)"
FORMAT = Format(
    "rllm",
    "rllm episode logs",
    _sniff,
    _read,
    {
        gaps.LENGTHS: _BACKEND,
        gaps.LOGPROBS: f"{_BACKEND}, with verl underneath",
        gaps.ENTROPY: "measured live in its older trainer only (docs/integrations/multi_agent.md)",
        gaps.VALIDATION: "validate during training: the same switch logs val_step_* episodes",
    },
    claim=_claim,
)
