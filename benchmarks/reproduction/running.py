"""Makes the runs of the plan that have no results yet, one after another in one process."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.reproduction.outcomes import FOLDER, append, load, load_bases, outcome
from benchmarks.reproduction.plan import Job, Plan
from reference_trainer.config import Config
from reference_trainer.exercises import exercises_for
from reference_trainer.pretrain import base_folder, base_key, load_base
from reference_trainer.readiness import readiness
from reference_trainer.run_folder import RunFolder
from reference_trainer.setup import prepare
from reference_trainer.tasks.code import CodeTask
from reference_trainer.tasks.math import MathTask
from reference_trainer.trainer import train
from reference_trainer.workflows.prompts import load_prompts

LEAST_WORKED = 0.6
"""Share of right answers, among those that show work, below which a base model cannot do the task.
Its runs are not made."""

_ANSWERS = 200
_DECISIVE = (":/reference_trainer", ":/roledrift", ":/benchmarks/reproduction/plan.toml")
_TRANSFERRED = ("generator", "worker")


def run_plan(
    plan: Plan, jobs: Sequence[Job], *, work: Path, cache: Path, results: Path = FOLDER
) -> None:
    """Make the runs of ``jobs`` that are not in ``results``.

    Can be ended at any time: what has a line is not made again, the run under way is.

    Args:
        plan: Where the jobs are from.
        jobs: In this order.
        work: Gets run directories; only those that other runs start from stay.
        cache: Of warmed-up base models.
        results: Folder of the lines.
    """
    code = code_version()
    done = {
        (row["experiment"], row["arm"], row["base"], row["seed"], row["config"])
        for row in load(results)
    }
    left = [
        (number, job)
        for number, job in enumerate(jobs, start=1)
        if (job.experiment, job.arm, job.base, job.seed, plan.hash(job)) not in done
    ]
    if not left:
        print(f"all {len(jobs)} runs are in {results} already; --results elsewhere makes them anew")
    for number, job in left:
        config = plan.config(job)
        where = f"{number}/{len(jobs)} {job.name}"
        if not able(plan, job, config, cache=cache, results=results):
            print(f"{where}: left out, its base model cannot do the task", flush=True)
            continue
        start = time.process_time()
        run = make(plan, job, config, work=work, cache=cache)
        cpu = time.process_time() - start
        row = outcome(run, job, config=plan.hash(job), code=code, cpu=cpu)
        append(row, results)
        if not _starts_others(plan, job):
            shutil.rmtree(run)
        last = f", accuracy {row['accuracy'][-1]:.2f}" if row["accuracy"] else ""
        print(f"{where}: {cpu:.0f} CPU s{last}; {row['told']['sentence']}", flush=True)


def make(plan: Plan, job: Job, config: Config, *, work: Path, cache: Path) -> Path:
    """Train one run from its beginning; its run directory."""
    start = plan.experiment(job.experiment).start
    if start:
        source = _folder(work, Job(start["experiment"], start["arm"], job.base, job.seed))
        if RunFolder(source).finished() is None:
            other = Job(start["experiment"], start["arm"], job.base, job.seed)
            make(plan, other, plan.config(other), work=work, cache=cache)
        adapter = str(RunFolder(source).adapters / start["policy"])
        roles = [name for name in config.routed().role_names if name in _TRANSFERRED]
        config = replace(config, initial_adapters=dict.fromkeys(roles, adapter))
    out = _folder(work, job)
    shutil.rmtree(out, ignore_errors=True)
    train(prepare(config, cache=cache), out=out)
    return out


def able(plan: Plan, job: Job, config: Config, *, cache: Path, results: Path) -> bool:
    """Whether the base model of a run can do its task; measured once, after its warm-up."""
    key = base_key(config)
    assert key is not None
    assert isinstance(config.task, MathTask | CodeTask)
    known = {row["key"]: row for row in load_bases(results)}
    if key not in known:
        start = time.process_time()
        model, tokenizer = load_base(base_folder(config, cache))
        ready = readiness(
            model,
            tokenizer,
            exercises_for(config.task),
            load_prompts(config.prompts),
            answers=_ANSWERS,
            seed=config.pretrain.seed + 1_000_000,
        )
        row = {
            "recipe": plan.experiment(job.experiment).recipe,
            "task": config.task.name,
            "base": job.base,
            "key": key,
            "worked": round(ready.worked, 3),
            "others": round(ready.others, 3),
            "share": round(ready.share, 3),
            "cpu": round(time.process_time() - start, 1),
        }
        results.mkdir(parents=True, exist_ok=True)
        with (results / "bases.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        known[key] = row
    return float(known[key]["worked"]) >= LEAST_WORKED


def code_version() -> str:
    """The commit that is checked out, with ``+`` if code that runs depend on differs from it."""
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    changed = git("status", "--porcelain", "--untracked-files=no", "--", *_DECISIVE)
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + ("+" if changed else "")


def _folder(work: Path, job: Job) -> Path:
    return work / f"{job.experiment}-{job.arm}-b{job.base}-s{job.seed}"


def _starts_others(plan: Plan, job: Job) -> bool:
    return any(
        experiment.start.get("experiment") == job.experiment
        and experiment.start.get("arm") == job.arm
        for experiment in plan.experiments
    )
