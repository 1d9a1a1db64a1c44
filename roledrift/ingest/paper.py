"""Evaluation dumps of the released code of arXiv 2605.24202, with ``eval_results.jsonl``.

``<experiment>/<dataset>/step_<N>/<episode>.json``, one episode per file; older dumps lack the
dataset level. What a selecting role wrote is in ``model_output``; ``action`` there is the text of
the candidate that it chose.
"""

from __future__ import annotations

import re
from pathlib import Path

from roledrift.errors import StoreError
from roledrift.ingest import gaps
from roledrift.ingest.episodes import Broadcast, spans_of
from roledrift.ingest.form import Facts, Format, Job
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import document, documents, first_document, head, walk
from roledrift.ingest.rows import Events, Series, StepDone
from roledrift.ingest.unpacking import matching, plain
from roledrift.ingest.values import number, whole

_STEP = re.compile(r"step_(\d{1,12})\Z")
_EXPERIMENT = re.compile(
    r"(?P<workflow>.+?)-(?P<model>qwen3_[\d.]+b)-(?P<policy>share_policy|multi_lora|base_model|single"
    r"_agent\w*)-(?P<task>[a-z_]+)"
)
_WORKFLOWS = {"evaluator_optimizer": "eval_opt", "orchestrator_workers": "orch_workers"}
RESULTS = "eval_results.jsonl"
_DEPTH = 4


def _sniff(path: Path) -> str | None:
    if path.is_file():
        row = first_document(path) if path.suffix == ".jsonl" else {}
        return "rows of eval_results.jsonl" if _is_result(row) else None
    for folder in _step_folders(path, first=True):
        for file in matching(folder, "*.json")[:3]:
            start = head(file, 1 << 20)
            if b'"trajectories"' in start or (b'"task"' in start and b'"termination_' in start):
                return f"episode files with trajectories under {folder.name}/"
    results = path / RESULTS
    if results.is_file() and _is_result(first_document(results)):
        return "a folder with eval_results.jsonl"
    return None


def _is_result(row: dict[str, object]) -> bool:
    return {"checkpoint_step", "accuracy"} <= set(row)


def _step_folders(path: Path, *, first: bool = False, ledger: Ledger | None = None) -> list[Path]:
    if _STEP.match(path.name):
        return [path]
    found: list[Path] = []
    for folder, files in walk(path, depth=_DEPTH, ledger=ledger):
        if _STEP.match(folder.name) and any(plain(name).endswith(".json") for name in files):
            found.append(folder)
            if first:
                break
    return found


def _read(job: Job) -> Events:
    if job.source.is_file():
        yield from _results_only(job, job.source)
        return
    folders = _step_folders(job.source, ledger=job.ledger)
    parents = sorted({folder.parent for folder in folders})
    if not folders:
        yield from _results_only(job, job.source / RESULTS)
        return
    if len(parents) > 1:
        names = ", ".join(str(one.relative_to(job.source)) for one in parents[:6])
        raise StoreError(f"{job.source}: holds {len(parents)} dumps ({names}); import one of them")
    experiment = _facts(job, parents[0])
    accuracies = _accuracies(job, parents[0], experiment)
    broadcast = Broadcast()
    for folder in sorted(folders, key=_number):
        step = _number(folder)
        if step in accuracies:
            yield Series(step, totals={"val_accuracy": accuracies.pop(step)})
        for file in matching(folder, "*.json"):
            body = document(file, job.ledger)
            if body is None:
                job.ledger.skip("episode file skipped", file.name, step=step)
                continue
            yield from spans_of(body, step, f"{folder.name}/{file.name}", job, broadcast)
        yield StepDone(step)
    for step, accuracy in sorted(accuracies.items()):
        yield Series(step, totals={"val_accuracy": accuracy})
        yield StepDone(step)
    job.facts.notes.update(broadcast.notes())


def _number(folder: Path) -> int:
    match = _STEP.match(folder.name)
    return int(match[1]) if match else 0


def _facts(job: Job, parent: Path) -> str:
    """Fill in what the experiment's name says; the name of the experiment's folder."""
    facts = job.facts
    facts.host = "paper code (rllm fork), evaluation dump"
    for folder in (parent.resolve(), *parent.resolve().parents[:2]):
        if named_after(folder.name, facts):
            return folder.name
    facts.run = parent.resolve().name
    return ""


def named_after(name: str, facts: Facts) -> bool:
    """Fill in what an experiment's name says, if it is one that the paper's launcher gives.

    Args:
        name: For example ``voting-qwen3_1.7b-multi_lora-math``.
        facts: Where scale, task, workflow and routing go.
    """
    found = _EXPERIMENT.match(name)
    if found is None:
        return False
    facts.run = name
    facts.scale = found["model"].removeprefix("qwen3_")
    facts.task = found["task"]
    facts.workflow = _WORKFLOWS.get(found["workflow"], found["workflow"])
    facts.routing = "isolated" if found["policy"] == "multi_lora" else "shared"
    return True


def _accuracies(job: Job, parent: Path, experiment: str) -> dict[int, float]:
    """Validation accuracy by step, from the results file in the dump or up to three levels up."""
    for folder in (job.source, parent, *parent.resolve().parents[:3]):
        file = folder / RESULTS
        if file.is_file():
            names = {experiment} if experiment else set()
            rows = _results(job, file, names)
            chosen = {name: steps for name, steps in rows.items() if parent.name in name} or rows
            if len(chosen) == 1:
                job.facts.notes["validation"] = f"from {file.name}"
                return next(iter(chosen.values()))
            if chosen:
                job.ledger.skip("results of several experiments or data sets, none taken", file)
            return {}
    return {}


def _results_only(job: Job, file: Path) -> Events:
    rows = _results(job, file, set())
    if len(rows) != 1:
        names = ", ".join("/".join(name) for name in sorted(rows)[:6])
        raise StoreError(
            f"{file}: holds results of {len(rows)} experiments and data sets ({names}); import the "
            "folder of one experiment's dump, or a file with its rows only"
        )
    (name,) = rows
    job.facts.run, job.facts.task = name[0] or job.facts.run, name[1]
    job.facts.slots["policy"] = 1
    for step, accuracy in sorted(rows[name].items()):
        yield Series(step, totals={"val_accuracy": accuracy})
        yield StepDone(step)


def _results(job: Job, file: Path, names: set[str]) -> dict[tuple[str, str], dict[int, float]]:
    """Accuracy by step, per experiment and data set; training lengths win over evaluation ones."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    lengths: dict[tuple[tuple[str, str], int], str] = {}
    for where, row in documents(file, job.ledger):
        step, accuracy = whole(row.get("checkpoint_step")), number(row.get("accuracy"))
        if step is None or accuracy is None:
            job.ledger.skip("result without step or accuracy", where)
            continue
        key = (str(row.get("experiment_name", "")), str(row.get("dataset", "")))
        if names and key[0] not in names:
            continue
        if row.get("eval_mode", "trained_checkpoint") not in ("trained_checkpoint", "base_model"):
            job.ledger.skip("result of a transfer evaluation", where)
            continue
        if isinstance(row.get("share_policy"), bool) and job.facts.routing is None:
            job.facts.routing = "shared" if row["share_policy"] else "isolated"
        length = str(row.get("length_mode", "training"))
        if lengths.get((key, step)) == "training" and length != "training":
            continue
        lengths[key, step] = length
        found.setdefault(key, {})[step] = accuracy
    return found


FORMAT = Format(
    "paper",
    "evaluation dumps of the paper's code",
    _sniff,
    _read,
    {
        gaps.VALIDATION: "lay eval_results.jsonl beside the dump",
        gaps.TEXTS: "evaluate with --trajectory-output-dir",
        gaps.LENGTHS: "evaluate with --trajectory-output-dir",
        gaps.REWARDS: "evaluate with --trajectory-output-dir",
        gaps.LOGPROBS: "in the training's wandb run or console log, of each role only if policies "
        "are isolated",
        gaps.ENTROPY: "logged for all roles together only; of each role if watched live "
        "(docs/integrations/verl.md)",
    },
)
