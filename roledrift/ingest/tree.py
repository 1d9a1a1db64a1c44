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

from roledrift.ingest import console_log, paper, rllm, verl, wandb_dir
from roledrift.ingest.experiment import own_set, parsed
from roledrift.ingest.form import Format
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import first_document
from roledrift.ingest.results import NAME as RESULTS
from roledrift.ingest.results import experiments, is_result, results
from roledrift.ingest.unpacking import plain

_DEPTH = 6
_FOLDERS = 20_000
_LEVELS = {"rollout_data", "rollout", "rollouts", "train", "episodes", "wandb", "files", "logs"}
"""Folders that say what is in them, and not what it is of."""

_LOGS = (".log", ".out", ".txt", ".jsonl")
_DATABASES = (".db", ".sqlite", ".sqlite3")
_SPECIAL = ("paper", "rllm", "wandb", "verl", "table")
_DUMPED = re.compile(r"\d{1,12}\.jsonl\Z")


@dataclass(frozen=True, slots=True)
class LogSource:
    """One log of a tree.

    Attributes:
        form: Its format.
        part: Which of several runs at ``path`` is meant; empty if there is one.
        name: What it is of.
        dataset: Problems that it evaluates on; empty if it does not say.
        steps: How many steps it has, roughly.
    """

    form: Format
    path: Path
    name: str
    part: tuple[str, ...] = ()
    dataset: str = ""
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """One run of a tree.

    Attributes:
        name: Unique in the tree.
        sources: What it is read from. Outputs come from the first, series from all.
    """

    name: str
    sources: tuple[LogSource, ...]


def find(root: Path, formats: dict[str, Format]) -> list[Found]:
    """The runs of a tree, by name. One at most: ``root`` is one log, or none.

    Args:
        root: Folder, or a file that may hold several runs.
        formats: Every format there is.
    """
    if not root.is_dir():
        return runs_at(root, list(formats.values()))
    others = [form for name, form in formats.items() if name not in _SPECIAL]
    there = list(_sources(root, others))
    there += _of_results(root, there)
    return _united(_without_bases(there))


def runs_at(path: Path, forms: list[Format]) -> list[Found]:
    """The runs of a database, or of a folder whose format can hold several; empty of any other."""
    return _united(_runs_at(path, forms))


def _sources(root: Path, others: list[Format]) -> Iterator[LogSource]:
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
) -> tuple[list[LogSource], list[Path]]:
    """Sources in a folder, and the folders below it that are still to be looked through."""
    starts = wandb_dir.below(folder)
    if starts:
        taken = {place for _, _, place in starts}
        return list(_wandb(folder, starts)), [one for one in below if one not in taken]
    steps = [one for one in below if paper.is_step(one)]
    if steps and any(map(paper.holds_episodes, steps[:3])):
        return [_paper(folder, len(steps))], []
    episodes = [one for one in below if rllm.is_step(one)]
    if episodes:
        return [LogSource(rllm.FORMAT, folder, _named(folder), steps=len(episodes))], []
    several = _runs_at(folder, others)
    if several:
        return several, []
    for form in others:
        if form.sniff(folder):
            return [LogSource(form, folder, _named(folder))], []
    dumps = verl.dumps(folder)
    if dumps and verl.is_dump(first_document(dumps[min(dumps)])):
        inside = next(iter(dumps.values())).parent
        rest = [one for one in below if one != inside]
        return [LogSource(verl.FORMAT, folder, _named(folder), steps=len(dumps))], rest
    return list(_logs(folder, others)), below


def _paper(folder: Path, steps: int) -> LogSource:
    name = paper.experiment_of(folder)
    dataset = folder.name if name and folder.resolve().name != name else ""
    return LogSource(paper.FORMAT, folder, name or _named(folder), dataset=dataset, steps=steps)


def _wandb(folder: Path, starts: list[tuple[str, str, Path]]) -> Iterator[LogSource]:
    for name in sorted({name for _, name, _ in starts}):
        mine = [place for _, its, place in starts if its == name]
        called = wandb_dir.called(mine) or name
        yield LogSource(wandb_dir.FORMAT, folder, called, (name,), steps=1)


def _runs_at(path: Path, forms: list[Format]) -> list[LogSource]:
    """The runs of a database or a folder of a format that can hold several."""
    for form in forms:
        if form.runs is not None and form.sniff(path):
            return [LogSource(form, path, name, (run,), steps=1)
                    for run, name in form.runs(path).items()]  # fmt: skip
    return []


def _logs(folder: Path, others: list[Format]) -> Iterator[LogSource]:
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
        name = _named(folder) if alone else plain(file.name).rpartition(".")[0]
        yield LogSource(verl.FORMAT, file, name, steps=1)


def _of_results(root: Path, there: list[LogSource]) -> Iterator[LogSource]:
    """Experiments that only a file of results knows."""
    known = {(one.name, one.dataset) for one in there if one.form is paper.FORMAT}
    names = {name for name, _ in known}
    for file in sorted({one for level in ("", "*/", "*/*/") for one in root.glob(level + RESULTS)}):
        if not is_result(first_document(file)):
            continue
        for name, dataset in experiments(results(file, Ledger())):
            if name and (name, dataset) not in known and (name, "") not in known:
                label = f"{name} on {dataset}" if name in names else name
                yield LogSource(paper.FORMAT, file, label, (name, dataset), dataset)


def _named(folder: Path) -> str:
    there = folder.resolve()
    return next((one.name for one in (there, *there.parents) if one.name not in _LEVELS), "run")


def _without_bases(there: list[LogSource]) -> list[LogSource]:
    """Without evaluations of the base model that become a number of the trainings from it."""
    taken = {
        base.resolve()
        for one in there
        if one.form is paper.FORMAT and one.path.is_dir()
        for base in paper.base_dumps(one.path, one.name, one.dataset)
    }
    cells = {
        (name.cell, one.dataset)
        for one in there
        if (name := parsed(one.name)) is not None and name.trained
    }
    return [
        one
        for one in there
        if one.path.resolve() not in taken and not (one.path.is_file() and _is_base(one) in cells)
    ]


def _is_base(one: LogSource) -> tuple[tuple[str, str, str], str] | None:
    name = parsed(one.part[0]) if one.part else None
    return (name.cell, one.dataset) if name is not None and name.kind == "base_model" else None


def _united(there: list[LogSource]) -> list[Found]:
    groups: dict[str, list[LogSource]] = {}
    for one in there:
        known = parsed(one.name)
        foreign = known is not None and one.dataset and not own_set(known.task, one.dataset)
        groups.setdefault(f"{one.name} on {one.dataset}" if foreign else one.name, []).append(one)
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


def _outputs(one: LogSource) -> bool:
    """Whether outputs are in it, and not only numbers."""
    return one.form is not wandb_dir.FORMAT and not one.path.is_file()


def _kind(one: LogSource) -> tuple[str, object]:
    """What kind of a source it is, and which one of that kind."""
    loose = one.path.is_file() and one.form is verl.FORMAT
    return ("loose log", one.path.parent) if loose else (one.form.name, (one.path, one.part))


def _mark(one: LogSource) -> str:
    return one.part[-1] if one.part else one.dataset or one.path.parent.name or one.form.name
