"""A grid on given devices: what its runs need, which are refused, and which devices each gets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reference_trainer.children import Launch
from reference_trainer.errors import SettingsError
from reference_trainer.grid import Job
from reference_trainer.grid_results import status
from reference_trainer.planning.gpu import Gpu, Lengths
from reference_trainer.planning.plan import Plan, plan
from reference_trainer.planning.show import flags, gpu_days, shortage, table
from reference_trainer.progress import Progress

_JOBS = 2
"""Runs at the same time on a machine without a GPU."""


def planned(jobs: Sequence[Job], gpu: Gpu, lengths: Lengths) -> list[Plan | None]:
    """The plans of trainings with a model of their own; tiny models run on any CPU.

    Raises:
        SettingsError: As :func:`~reference_trainer.planning.plan.plan`.
    """
    plans: list[Plan | None] = []
    with Progress("plans", total=len(jobs)) as progress:
        for number, job in enumerate(jobs, start=1):
            own = job.config is not None and job.config.model.path and not job.source
            plans.append(plan(job.config, gpu, lengths) if own and job.config else None)
            progress.advance(number, job.name)
    return plans


def refuse(jobs: Sequence[Job], plans: Sequence[Plan | None]) -> list[Job]:
    """``jobs``, in which those that do not fit or have no model say so instead of being run."""
    result = []
    for job, made in zip(jobs, plans, strict=True):
        problem = "" if made is None or made.fits else f"it does not fit: {shortage(made)}"
        if made is not None and made.advice:
            problem += f". It fits with {' '.join(flags(made.advice))}"
        path = "" if job.config is None else job.config.model.path
        if path and not problem and not (Path(path) / "config.json").is_file():
            problem = f"there is no model in {path}: put it there, or set model.path"
        result.append(replace(job, config=None, problem=problem) if problem else job)
    refused = {job.name for job in result if job.problem}
    return [
        replace(job, config=None, problem=f"it needs the adapter of {job.source}, which cannot run")
        if job.source in refused
        else job
        for job in result
    ]


def list_grid(
    jobs: Sequence[Job], plans: Sequence[Plan | None], *, out: Path, gpu: Gpu | None
) -> None:
    """Print which runs there are, how far each is, and what it needs."""
    states = [
        f"cannot be run: {job.problem}" if job.problem else status(out / job.name) for job in jobs
    ]
    if gpu is None:
        lines = [f"{job.name:36} {state}" for job, state in zip(jobs, states, strict=True)]
    else:
        rows = zip((job.name for job in jobs), states, plans, strict=True)
        lines = table(list(rows), gpu)
    print("\n".join(lines))
    words = [f"{len(jobs)} runs"]
    if beyond := sum(job.config is None for job in jobs):
        words.append(f"{beyond} of them cannot be run by this version")
    made = [entry for entry in plans if entry is not None]
    if made:
        unfit = sum(not entry.fits for entry in made)
        days = sum(gpu_days(entry) for entry in made)
        words.append(f"{unfit} do not fit" if unfit else "all that are trained fit")
        words.append(f"{days:.0f} GPU days by the estimates that `plan CELL` explains")
    elif any(job.config is not None and job.config.model.path for job in jobs):
        words.append("add --gpu 80GB to see what each needs")
    print("; ".join(words))


def launch(*, jobs: int | None, ranks: int, visible: Sequence[str]) -> Launch:
    """How the runs are started.

    Args:
        jobs: Runs at the same time; None for as many as the devices allow.
        ranks: Devices, and so processes, of each.
        visible: Devices of this machine.

    Raises:
        SettingsError: If the machine has fewer devices than that needs.
    """
    if ranks < 1 or (jobs is not None and jobs < 1):
        raise SettingsError(f"--gpus and --jobs must be at least 1, got {ranks} and {jobs}")
    if not visible:
        return Launch(_JOBS if jobs is None else jobs, ranks)
    count = max(1, len(visible) // ranks) if jobs is None else jobs
    if count * ranks > len(visible):
        raise SettingsError(
            f"--jobs {count} of --gpus {ranks} each need {count * ranks} GPUs, and "
            f"{len(visible)} are visible: lower one of them"
        )
    groups = (visible[i * ranks : (i + 1) * ranks] for i in range(count))
    return Launch(count, ranks, tuple(",".join(group) for group in groups))


def visible_devices() -> list[str]:
    """Names of the GPUs that this process may use."""
    import torch

    if not torch.cuda.is_available():
        return []
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",") if named else [str(i) for i in range(torch.cuda.device_count())]


def device_memory() -> int | None:
    """Bytes of the first GPU; None without one."""
    import torch

    if not torch.cuda.is_available():
        return None
    return int(torch.cuda.get_device_properties(0).total_memory)
