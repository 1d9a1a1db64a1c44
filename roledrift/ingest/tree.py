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
            below = [one for one in entries if one.is_dir() and not one.is_symlink()]
        except OSError:
            continue
        below = [one for one in below if not one.name.startswith(".")]
        found, rest = _claimed(folder, below, others)
        yield from found
        if depth < _DEPTH:
            todo += [(one, depth + 1) for one in rest]


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
        rest = [one for one in below if one != inside]
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
    found = []
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
            found.append(file)
    alone = len(found) == 1 and folder.name not in _LEVELS
    for file in found:
        name = named_by(folder) if alone else plain(file.name).rpartition(".")[0]
        yield Source(verl.FORMAT, file, name, steps=1)


def named_by(folder: Path) -> str:
    """The name of what a folder holds: its own, or that of the folder that it is a part of."""
    there = folder.resolve()
    return next((one.name for one in (there, *there.parents) if one.name not in _LEVELS), "run")


def _united(there: list[Source]) -> list[Found]:
    groups: dict[str, list[Source]] = {}
    for one in there:
        groups.setdefault(one.name, []).append(one)
    found = []
    for name, mine in sorted(groups.items()):
        # A console beside a file logger, both of one name, is one training's.
        kinds = Counter(kind for kind, _ in {_kind(one) for one in mine})
        if max(kinds.values()) == 1:
            order = sorted(mine, key=lambda one: (not _outputs(one), -one.steps, one.form.name))
            found.append(Found(name, tuple(order)))
            continue
        # Which of the two a dump belongs to, nobody says.
        found += [Found(f"{name}-{_mark(one)}", (one,)) for one in mine]
    names = Counter(one.name for one in found)
    return [
        one if names[one.name] == 1 else replace(one, name=f"{one.name}-{number}")
        for number, one in enumerate(found, start=1)
    ]


def _outputs(one: Source) -> bool:
    """Whether outputs are in it, and not only numbers."""
    return not one.form.only_numbers and not one.path.is_file()


def _kind(one: Source) -> tuple[str, object]:
    """What kind of a source it is, and which one of that kind."""
    loose = one.path.is_file() and one.form is verl.FORMAT
    return ("loose log", one.path.parent) if loose else (one.form.name, (one.path, one.part))


def _mark(one: Source) -> str:
    return one.part[-1] if one.part else one.dataset or one.path.parent.name or one.form.name
