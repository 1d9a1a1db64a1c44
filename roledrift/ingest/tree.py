"""A whole tree of logs at once: one run per experiment, the sources of one experiment united.

Sources of different kinds are one experiment if they have the same name: what a dump's folders are
called, and the ``experiment_name`` of a wandb run. Two sources of one kind and name are two
trainings (seeds), never one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from roledrift.ingest import console_log, verl
from roledrift.ingest.form import Format, Source
from roledrift.ingest.lines import first_document
from roledrift.ingest.unpacking import plain

_DEPTH = 6
_FOLDERS = 20_000
_LEVELS = {"rollout_data", "rollout", "rollouts", "train", "episodes", "wandb", "files", "logs"}
"""Folders that say what is in them, and not what it is of."""

_LOGS = (".log", ".out", ".txt", ".jsonl")
_DATABASES = (".db", ".sqlite", ".sqlite3")
_SPECIAL = ("verl", "table")
_DUMPED = re.compile(r"\d{1,12}\.jsonl\Z")


@dataclass(frozen=True, slots=True)
class Found:
    """One run of a tree.

    Attributes:
        name: Unique in the tree.
        sources: What it is read from. Outputs come from the first, series from all.
    """

    name: str
    sources: tuple[Source, ...]


def find(root: Path, formats: dict[str, Format]) -> list[Found]:
    """The runs of a tree, by name. One at most: ``root`` is one log, or none."""
    others = [form for name, form in formats.items() if name not in _SPECIAL]
    sources = list(_sources(root, others)) if root.is_dir() else _runs_at(root, others)
    for form in others:
        if form.settle is not None:
            sources = form.settle(form, root, sources)
    return _united(sources)


def runs_at(path: Path, forms: list[Format]) -> list[Found]:
    """The runs of a database, or of a folder whose format can hold several; empty of any other."""
    return _united(_runs_at(path, forms))


def _sources(root: Path, others: list[Format]) -> Iterator[Source]:
    """What lies at or below a folder; nothing is looked for inside of something found."""
    todo, left = [(root, 0)], _FOLDERS
    while todo and left:
        folder, depth = todo.pop(0)
        left -= 1
        try:
            entries = sorted(folder.iterdir())
            below = [path for path in entries if path.is_dir() and not path.is_symlink()]
        except OSError:
            continue
        below = [path for path in below if not path.name.startswith(".")]
        sources, rest = _claimed(folder, below, others)
        yield from sources
        if depth < _DEPTH:
            todo += [(path, depth + 1) for path in rest]


def _claimed(
    folder: Path, below: list[Path], others: list[Format]
) -> tuple[list[Source], list[Path]]:
    """Sources in a folder, and the folders below it that are still to be looked through."""
    for form in others:
        if form.claim is not None:
            sources, rest = form.claim(form, folder, below)
            if sources:
                return sources, rest
    several = _runs_at(folder, others)
    if several:
        return several, []
    for form in others:
        if form.claim is None and form.sniff(folder):
            return [Source(form, folder, named_by(folder))], []
    dumps = verl.dumps(folder)
    if dumps and verl.is_dump(first_document(dumps[min(dumps)])):
        inside = next(iter(dumps.values())).parent
        rest = [path for path in below if path != inside]
        return [Source(verl.FORMAT, folder, named_by(folder), steps=len(dumps))], rest
    return list(_logs(folder, others)), below


def _runs_at(path: Path, forms: list[Format]) -> list[Source]:
    """The runs of a database or a folder of a format that can hold several."""
    for form in forms:
        if form.runs is not None and form.sniff(path):
            return [Source(form, path, name, (run,), steps=1)
                    for run, name in form.runs(path).items()]  # fmt: skip
    return []


def _logs(folder: Path, others: list[Format]) -> Iterator[Source]:
    """Loose logs: each is of an experiment of its own, a single one is named by its folder."""
    logs = []
    for file in sorted(folder.iterdir()):
        name = plain(file.name)
        if file.is_file() and name.endswith(_DATABASES):
            yield from _runs_at(file, others)
            continue
        if not (file.is_file() and name.endswith(_LOGS)) or _DUMPED.match(name):
            continue
        if name.endswith(".jsonl"):
            known = verl.is_logged(first_document(file))
        else:
            known = console_log.looks_like(file)
        if known:
            logs.append(file)
    alone = len(logs) == 1 and folder.name not in _LEVELS
    for file in logs:
        name = named_by(folder) if alone else plain(file.name).rpartition(".")[0]
        yield Source(verl.FORMAT, file, name, steps=1)


def named_by(folder: Path) -> str:
    """The name of what a folder holds: its own, or that of the folder that it is a part of."""
    full = folder.resolve()
    return next((path.name for path in (full, *full.parents) if path.name not in _LEVELS), "run")


def _united(sources: list[Source]) -> list[Found]:
    groups: dict[str, list[Source]] = {}
    for source in sources:
        groups.setdefault(source.name, []).append(source)
    runs = []
    for name, alike in sorted(groups.items()):
        # A console beside a file logger, both of one name, is one training's.
        kinds = Counter(kind for kind, _ in {_kind(source) for source in alike})
        if max(kinds.values()) == 1:
            order = sorted(alike, key=_first_outputs)
            runs.append(Found(name, tuple(order)))
            continue
        # Which of the two a dump belongs to, nobody says.
        runs += [Found(f"{name}-{_mark(source)}", (source,)) for source in alike]
    names = Counter(run.name for run in runs)
    return [
        run if names[run.name] == 1 else replace(run, name=f"{run.name}-{number}")
        for number, run in enumerate(runs, start=1)
    ]


def _first_outputs(source: Source) -> tuple[bool, int, str]:
    return not _outputs(source), -source.steps, source.form.name


def _outputs(source: Source) -> bool:
    """Whether outputs are in it, and not only numbers."""
    return not source.form.only_numbers and not source.path.is_file()


def _kind(source: Source) -> tuple[str, object]:
    """What kind of a source it is, and which one of that kind."""
    loose = source.path.is_file() and source.form is verl.FORMAT
    if loose:
        return "loose log", source.path.parent
    return source.form.name, (source.path, source.part)


def _mark(source: Source) -> str:
    if source.part:
        return source.part[-1]
    return source.dataset or source.path.parent.name or source.form.name
