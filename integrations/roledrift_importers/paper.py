"""Evaluation dumps of the code of arXiv 2605.24202, with ``eval_results.jsonl``.

``<experiment>/<dataset>/step_<N>/<episode>.json``, one episode per file; older dumps lack the
dataset level. What a selecting role wrote is in ``model_output``; ``action`` there is the text of
the candidate that it chose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from roledrift.errors import StoreError
from roledrift.ingest import gaps
from roledrift.ingest.form import Claim, Format, Job, Source
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import document, first_document, head, walk
from roledrift.ingest.rows import Events, Series, StepDone
from roledrift.ingest.tree import named_by
from roledrift.ingest.unpacking import matching, plain
from roledrift.records import NOTE_SET
from roledrift.workflow import PRESETS
from roledrift_importers.episodes import Broadcast, spans_of
from roledrift_importers.experiment import named_after, own_set, parsed
from roledrift_importers.results import NAME as RESULTS
from roledrift_importers.results import Accuracies, accuracies, experiments, is_result, results

_STEP = re.compile(r"step_(\d{1,12})\Z")
_DIGITS = re.compile(r"(\d+)")
_DEPTH = 4


def _sniff(path: Path) -> str | None:
    if path.is_file():
        row = first_document(path) if path.suffix == ".jsonl" else {}
        return f"rows of {RESULTS}" if is_result(row) else None
    for folder in step_folders(path, first=True):
        if holds_episodes(folder):
            return f"episode files with trajectories under {folder.name}/"
    file = path / RESULTS
    if file.is_file() and is_result(first_document(file)):
        return f"a folder with {RESULTS}"
    return None


def _claim(form: Format, folder: Path, below: list[Path]) -> Claim:
    """The dump that a folder of a tree is."""
    steps = [folder_below for folder_below in below if _STEP.match(folder_below.name)]
    if not any(map(holds_episodes, steps[:3])):
        return [], below
    name = experiment_of(folder)
    dataset = folder.name if name and folder.resolve().name != name else ""
    source = Source(form, folder, name or named_by(folder), dataset=dataset, steps=len(steps))
    return [source], []


def _settle(form: Format, root: Path, sources: list[Source]) -> list[Source]:
    """All logs of a tree, with experiments that only a file of results knows.

    Evaluations of the base model are left out: they become a number of the trainings from it.
    """
    sources = [*sources, *_of_results(form, root, sources)]
    taken = {
        base.resolve()
        for source in sources
        if source.form.name == form.name and source.path.is_dir()
        for base in base_dumps(source.path, source.name, source.dataset)
    }
    cells = {
        (name.cell, source.dataset)
        for source in sources
        if (name := parsed(source.name)) is not None and name.trained
    }
    return [
        _described(source)
        for source in sources
        if source.path.resolve() not in taken
        and not (source.path.is_file() and _base_cell(source) in cells)
    ]


def _described(source: Source) -> Source:
    """With the facts in its name; on other problems than its own it is another experiment."""
    name = parsed(source.name)
    if name is None:
        return source
    source = replace(source, describe=partial(named_after, source.name))
    if source.dataset and not own_set(name.task, source.dataset):
        return replace(source, name=f"{source.name} on {source.dataset}")
    return source


def _of_results(form: Format, root: Path, sources: list[Source]) -> Iterator[Source]:
    known = {(source.name, source.dataset) for source in sources if source.form.name == form.name}
    names = {name for name, _ in known}
    levels = ("", "*/", "*/*/")
    for file in sorted({path for level in levels for path in root.glob(level + RESULTS)}):
        if not is_result(first_document(file)):
            continue
        for name, dataset in experiments(results(file, Ledger())):
            if name and (name, dataset) not in known and (name, "") not in known:
                label = f"{name} on {dataset}" if name in names else name
                yield Source(form, file, label, (name, dataset), dataset)


def _base_cell(source: Source) -> tuple[tuple[str, str, str], str] | None:
    """The cell of the grid whose base model a source evaluates; None if it does not."""
    name = parsed(source.part[0]) if source.part else None
    return (name.cell, source.dataset) if name is not None and name.kind == "base_model" else None


def holds_episodes(folder: Path) -> bool:
    """Whether the files of a ``step_<N>`` folder are episodes."""
    starts = (head(file, 1 << 20) for file in matching(folder, "*.json")[:3])
    return any(
        b'"trajectories"' in start or (b'"task"' in start and b'"termination_' in start)
        for start in starts
    )


def step_folders(path: Path, *, first: bool = False, ledger: Ledger | None = None) -> list[Path]:
    """Folders ``step_<N>`` with JSON files, at or below ``path``; only the first if asked for."""
    if _STEP.match(path.name):
        return [path]
    folders: list[Path] = []
    for folder, files in walk(path, depth=_DEPTH, ledger=ledger):
        if _STEP.match(folder.name) and any(plain(name).endswith(".json") for name in files):
            folders.append(folder)
            if first:
                break
    return folders


def _read(job: Job) -> Events:
    job.facts.host = "paper code (rllm fork), evaluation dump"
    if job.source.is_file():
        yield from _results_only(job, job.source)
        return
    folders = step_folders(job.source, ledger=job.ledger)
    parents = sorted({folder.parent for folder in folders})
    if not folders:
        yield from _results_only(job, job.source / RESULTS)
        return
    if len(parents) > 1:
        names = ", ".join(str(parent.relative_to(job.source)) for parent in parents[:6])
        raise StoreError(f"{job.source}: holds {len(parents)} dumps ({names}); import one of them")
    experiment = _name(job, parents[0])
    known = _known(job, parents[0], experiment)
    by_step = dict(known.by_step) if known else {}
    broadcast = Broadcast()
    start = min([_number(folder) for folder in folders] + list(by_step))
    yield from _base(job, parents[0], experiment, known, start)
    for folder in sorted(folders, key=_number):
        step = _number(folder)
        if step in by_step:
            yield Series(step, totals={"val_accuracy": by_step.pop(step)})
        yield from _episodes(folder, step, job, broadcast, count=known is None)
        yield StepDone(step)
    for step, accuracy in sorted(by_step.items()):
        yield Series(step, totals={"val_accuracy": accuracy})
        yield StepDone(step)
    if known is None:
        job.facts.notes["validation"] = "share of solved episodes in the dump"
    job.facts.notes.update(broadcast.notes())


def _episodes(folder: Path, step: int, job: Job, broadcast: Broadcast, *, count: bool) -> Events:
    """Spans of a step; and the share of solved episodes, if nothing else says it."""
    outcomes: list[bool] = []
    for file in in_order(folder):
        body = document(file, job.ledger)
        if body is None:
            job.ledger.skip("episode file skipped", file.name, step=step)
            continue
        if isinstance(body.get("is_correct"), bool):
            outcomes.append(body["is_correct"])
        yield from spans_of(body, step, f"{folder.name}/{file.name}", job, broadcast)
    if count and outcomes:
        yield Series(step, totals={"val_accuracy": sum(outcomes) / len(outcomes)})


def in_order(folder: Path) -> list[Path]:
    """Episode files by the number of their problem: ``eval_2`` before ``eval_10``."""
    return sorted(matching(folder, "*.json"), key=lambda file: _natural(file.name))


def _natural(name: str) -> list[tuple[int, int, str]]:
    parts = _DIGITS.split(name)
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]


def _number(folder: Path) -> int:
    match = _STEP.match(folder.name)
    return int(match[1]) if match else 0


def _name(job: Job, parent: Path) -> str:
    """The experiment's name, with the facts in it; empty if no folder has such a name."""
    experiment = experiment_of(parent)
    if named_after(experiment, job.facts):
        _of_set(job, parent.name if parent.name != experiment else "")
        return experiment
    job.facts.run = parent.resolve().name
    return ""


def experiment_of(dump: Path) -> str:
    """The name of the experiment that a dump is of; empty if none of its folders names one."""
    full = dump.resolve()
    return next((place.name for place in (full, *full.parents[:2]) if parsed(place.name)), "")


def _of_set(job: Job, dataset: str) -> None:
    """Say what the accuracy is about; on other problems than its own it is another task."""
    facts = job.facts
    if dataset:
        facts.notes[NOTE_SET] = dataset
    if dataset and not own_set(facts.task, dataset):
        facts.task = f"{facts.task} on {dataset}"


def _known(job: Job, parent: Path, experiment: str) -> Accuracies | None:
    """Accuracies from the results file in the dump or up to three levels up."""
    places = dict.fromkeys((job.source.resolve(), parent.resolve(), *parent.resolve().parents[:3]))
    file = next((place / RESULTS for place in places if (place / RESULTS).is_file()), None)
    if file is None:
        return None
    rows = results(file, job.ledger)
    listed = [key for key in experiments(rows) if not experiment or key[0] == experiment]
    chosen = [key for key in listed if key[1] == parent.name] or listed
    if len(chosen) > 1:
        job.ledger.skip("results of several experiments or data sets, none taken", file)
    if len(chosen) != 1:
        return None
    (key,) = chosen
    known = accuracies(rows, *key, job.ledger)
    if known is not None:
        _tell(job, known, file)
    return known


def _tell(job: Job, known: Accuracies, file: Path) -> None:
    facts = job.facts
    facts.notes["validation"] = f"from {file.name}"
    facts.notes[NOTE_SET] = known.dataset or facts.notes.get(NOTE_SET, "")
    if known.lengths != "training":
        facts.notes["validation lengths"] = "those of the evaluation, longer than in training"
    if facts.routing is None and known.shared is not None:
        facts.routing = "shared" if known.shared else "isolated"


def _base(
    job: Job, parent: Path, experiment: str, known: Accuracies | None, start: int
) -> Iterator[Series]:
    """The base model's accuracy: from the results, else from its dump beside this one."""
    name = parsed(experiment)
    if name is None or not name.trained:
        return
    base = known.base if known else None
    origin = RESULTS
    if base is None and (known is None or known.lengths == "training"):
        dataset = parent.name if parent.resolve().name != experiment else ""
        for dump in base_dumps(parent, experiment, dataset):
            base, origin = _solved(dump, job.ledger), f"the dump {dump.parent.name}"
    if base is not None:
        job.facts.notes["base accuracy"] = f"from {origin}"
        yield Series(start, totals={"base_accuracy": base})


def base_dumps(parent: Path, experiment: str, dataset: str) -> list[Path]:
    """Dumps of the base model in the same workflow, beside the dump of an experiment."""
    name = parsed(experiment)
    own = next((place for place in (parent, *parent.parents) if place.name == experiment), None)
    if name is None or not name.trained or own is None or not own.parent.is_dir():
        return []
    dumps = []
    for beside in sorted(own.parent.iterdir()):
        other = parsed(beside.name)
        if other is not None and other.kind == "base_model" and other.cell == name.cell:
            dumps += [dump for dump in (beside / dataset,) if (dump / "step_0").is_dir()]
    return dumps[:1]


def _solved(dump: Path, ledger: Ledger) -> float | None:
    bodies = (document(file, ledger) or {} for file in in_order(dump / "step_0"))
    outcomes = [body["is_correct"] for body in bodies if isinstance(body.get("is_correct"), bool)]
    return sum(outcomes) / len(outcomes) if outcomes else None


def _results_only(job: Job, file: Path) -> Events:
    rows = results(file, job.ledger)
    listed = [key for key in experiments(rows) if job.part in ((), key)]
    if len(listed) != 1:
        names = ", ".join("/".join(name) for name in listed[:6])
        raise StoreError(
            f"{file}: holds results of {len(listed)} experiments and data sets ({names}); import "
            "its folder, which makes a run of each, or a file with the rows of one"
        )
    ((experiment, dataset),) = listed
    known = accuracies(rows, experiment, dataset, job.ledger)
    if not named_after(experiment, job.facts):
        job.facts.run, job.facts.task = experiment or job.facts.run, dataset
    if known is None:
        return
    _of_set(job, dataset)
    _tell(job, known, file)
    preset = PRESETS.get(job.facts.workflow)
    job.facts.slots |= {role.name: role.slots for role in preset.roles} if preset else {"policy": 1}
    if known.base is not None:
        start = min(known.by_step, default=0)
        yield Series(start, totals={"base_accuracy": known.base})
    for step, accuracy in sorted(known.by_step.items()):
        yield Series(step, totals={"val_accuracy": accuracy})
        yield StepDone(step)


FORMAT = Format(
    "paper",
    "evaluation dumps of the paper's code",
    _sniff,
    _read,
    {
        gaps.VALIDATION: f"lay {RESULTS} beside the dump",
        gaps.TEXTS: "evaluate with --trajectory-output-dir",
        gaps.LENGTHS: "evaluate with --trajectory-output-dir",
        gaps.REWARDS: "evaluate with --trajectory-output-dir",
        gaps.LOGPROBS: "in the training's wandb run or console log, of each role only if policies "
        "are isolated",
        gaps.ENTROPY: "logged for all roles together only; of each role if watched live "
        "(docs/integrations/verl.md)",
    },
    claim=_claim,
    settle=_settle,
    evaluates=True,
)
