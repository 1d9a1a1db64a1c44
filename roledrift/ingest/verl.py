"""verl's rollout dumps ``<step>.jsonl``, file logger rows and console logs.

A dump row is ``{input, output, gts, score, step}`` and, since verl 0.9, ``uid`` with the output's
index inside its episode. Only some reward functions add a role; ``--roles`` names them otherwise,
by the output's index or by the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from roledrift.ingest import console_log, gaps
from roledrift.ingest.form import Format, Job
from roledrift.ingest.grade import answer_text, answers, boxed_run, is_right
from roledrift.ingest.keys import Translator, compared, passed_note, useful
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import documents, first_document
from roledrift.ingest.rows import Events, Series, SpanRow, StepDone
from roledrift.ingest.unpacking import matching, plain
from roledrift.ingest.values import integer, number, section, text, truth
from roledrift.records import NOTE_SET

_DUMP = re.compile(r"(\d{1,12})\.jsonl\Z")
_UID = re.compile(r"(.+)_(\d{1,9})_(\d{1,4})\Z", re.DOTALL)
_LOGS = (".log", ".txt", ".out")
_ROLE_KEYS = ("role", "agent_id", "agent", "agent_name")
_UNNAMED = "output"
_LOOKED_AT = 200
_LABELS = {
    "source": "foreign series",
    "pooling": "as logged: unweighted means over micro-batches, n unknown",
    "log-prob temperatures": "not recorded; rollout.* has a floor if they differ",
}


def _sniff(path: Path) -> str | None:
    if path.is_file():
        if plain(path.name).endswith(_LOGS) and console_log.looks_like(path):
            return "a console log with 'step:N - key:value' lines"
        first = first_document(path) if ".jsonl" in path.name else {}
        if is_dump(first):
            return "a rollout dump with input, output and score"
        return "rows of verl's file logger" if is_logged(first) else None
    steps = dumps(path)
    if steps and is_dump(first_document(steps[min(steps)])):
        return f"{len(steps)} rollout dumps <step>.jsonl"
    if any(is_logged(first_document(file)) for file in _others(path, ".jsonl")[:5]):
        return "rows of verl's file logger"
    if any(console_log.looks_like(file) for suffix in _LOGS for file in _others(path, suffix)[:5]):
        return "a console log with 'step:N - key:value' lines"
    return None


def is_dump(row: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a row of a rollout dump."""
    return {"input", "output"} <= set(row) and ("score" in row or "step" in row)


def is_logged(row: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a row of the file logger."""
    return set(row) == {"step", "data"} and isinstance(row["data"], dict)


def dumps(path: Path) -> dict[int, Path]:
    """Step to file of the rollout dumps in a folder, or in the one in it that is for them."""
    if not path.is_dir():
        return {}
    for folder in (path, path / "rollout_data", path / "rollout", path / "train"):
        files = matching(folder, "*.jsonl") if folder.is_dir() else []
        steps = {int(match[1]): file for file in files if (match := _DUMP.match(plain(file.name)))}
        if steps:
            return steps
    return {}


def _others(path: Path, suffix: str) -> list[Path]:
    return [file for file in matching(path, f"*{suffix}") if not _DUMP.match(plain(file.name))]


def _read(job: Job) -> Events:
    job.facts.host = "verl"
    source = job.source
    whole_folder = source.is_dir()
    files = dumps(source)
    if not whole_folder and ".jsonl" in source.name and not is_logged(first_document(source)):
        match = _DUMP.match(plain(source.name))
        files = {int(match[1]) if match else 0: source}
    passed: dict[str, None] = {}
    logged = _logged(job, passed)
    series = {event.step: event for event in series_of(logged, job, passed) if not _done(event)}
    if files:
        # What the numbers imply gives way to what the outputs say.
        job.facts.slots.clear()
        job.facts.notes.pop("roles", None)
    boxed = not files or _boxed(files[min(files)], job)
    for step in sorted(set(files) | set(series)):
        if step in series:
            yield series[step]
        if step in files:
            yield from _spans(files[step], step, job, boxed=boxed)
        yield StepDone(step)


def series_of(rows: dict[int, dict[str, object]], job: Job, passed: dict[str, None]) -> Events:
    """Logged numbers by step as series; sets what they say about roles and routing."""
    translate = Translator(passed=passed)
    labels = _LABELS | compared({key for data in rows.values() for key in data})
    for step in sorted(rows):
        groups, totals = translate(rows[step])
        if "val_accuracy" in totals:
            job.facts.notes.setdefault(NOTE_SET, "that of the log")
        if groups or totals:
            yield Series(step, groups, totals, labels)
            yield StepDone(step)
    implied = translate.implied or ({} if translate.roles else {"policy": 1})
    job.facts.slots.update(
        {role: n for role, n in implied.items() if not translate.roles or role in translate.roles}
    )
    if job.facts.routing is None:
        job.facts.routing = "isolated" if translate.roles else "shared"
    if not translate.roles:
        job.facts.notes["roles"] = (
            "the numbers are of all roles together: per-role statistics need trajectory dumps"
        )
    job.facts.notes.update(passed_note(translate.passed))


def _done(event: object) -> bool:
    return isinstance(event, StepDone)


def _logged(job: Job, passed: dict[str, None]) -> dict[int, dict[str, object]]:
    """Numbers by step from file logger rows, then from the console where those lack them."""
    source = job.source
    files = [source] if source.is_file() else _others(source, ".jsonl")
    logs = (
        [source]
        if source.is_file()
        else [file for suffix in _LOGS for file in _others(source, suffix)]
    )
    rows: dict[int, dict[str, object]] = {}
    for file in (path for path in files if ".jsonl" in path.name):
        if not is_logged(first_document(file)):
            continue
        for where, row in documents(file, job.ledger):
            step = integer(row.get("step"))
            if step is None or not isinstance(row.get("data"), dict):
                job.ledger.skip("row that is no {step, data}", where)
                continue
            rows.setdefault(step, {}).update(useful(section(row, "data"), passed))
    for file in (path for path in logs if plain(path.name).endswith(_LOGS)):
        for step, data in console_log.steps(file, job.ledger):
            rows[step] = useful(data, passed) | rows.get(step, {})
    return rows


def _spans(file: Path, step: int, job: Job, *, boxed: bool) -> Iterator[SpanRow]:
    unnamed = 0
    for where, row in documents(file, job.ledger):
        if not is_dump(row):
            job.ledger.skip("row without input and output", where, step=step)
            continue
        own_step = integer(row.get("step"))
        if own_step is not None and own_step != step:
            job.ledger.skip("row of another step than its file", where, step=step)
        span, named = _span(row, step, job, boxed=boxed)
        unnamed += not named
        yield span
    if unnamed and "roles" not in job.facts.notes:
        job.facts.notes["roles"] = (
            "the dump names no roles: slots are the outputs' indices; give --roles "
            "'0=generator,1=...' or '~words of the prompt=role'"
        )


def _boxed(file: Path, job: Job) -> bool:
    first = (row for _, row in islice(documents(file, Ledger()), _LOOKED_AT))
    boxed = boxed_run((text(row.get("output")), number(row.get("score"))) for row in first)
    if not boxed:
        job.facts.notes["correct"] = "from 'acc', where there is one: the answers are in no boxes"
    return boxed


def _span(row: Mapping[str, Any], step: int, job: Job, *, boxed: bool) -> tuple[SpanRow, bool]:
    prompt, written = text(row.get("input")) or "", text(row.get("output"))
    uid = text(row.get("uid")) or ""
    match = _UID.match(uid)
    name = next((str(row[key]) for key in _ROLE_KEYS if row.get(key) not in (None, "")), "")
    named = bool(name)
    if not named:
        name = match[3] if match else _UNNAMED
    role, slot = job.roles.resolve(name, prompt)
    if not named and role == f"r{name}":
        role, slot = _UNNAMED, int(name)
    shares = {}
    gold = answer_text(row.get("gts"))
    stated = truth(row.get("acc"))
    if not boxed and stated is not None and answers(role):
        shares["correct"] = stated
    elif boxed and gold is not None and written is not None and answers(role):
        shares["correct"] = is_right(written, gold)
    group = match[1] if match else (uid or prompt)
    return SpanRow(
        step=step,
        role=role,
        slot=slot,
        prompt=prompt[:200] if not match else match[1],
        episode=f"{match[1]}_{match[2]}" if match else None,
        group=f"{group}|{name}",
        reward=number(row.get("score")),
        advantage=number(row.get("advantage")),
        text=written,
        prompt_text=prompt,
        shares=shares,
    ), named or role != _UNNAMED


_PLUGIN = "measured live by the plugin, 'roledrift: {...}' in verl's configuration"
FORMAT = Format(
    "verl",
    "verl rollout dumps, file logger rows and console logs",
    _sniff,
    _read,
    {
        gaps.TEXTS: "trainer.rollout_data_dir=<folder>, and --roles here",
        gaps.REWARDS: "trainer.rollout_data_dir=<folder>, and --roles here",
        gaps.LENGTHS: _PLUGIN,
        gaps.LOGPROBS: _PLUGIN,
        gaps.ENTROPY: _PLUGIN,
        gaps.VALIDATION: "trainer.logger=[console,file] and its log beside the dumps",
    },
)
