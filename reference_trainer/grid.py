"""The grid: every workflow with one adapter for all and one adapter each, by task and scale.

Three workflows x two routings x two tasks x three scales, and a single role without any workflow as
the control of every task and scale: 42 cells, each its own run directory and its own process. When
they are trained, the adapter of every control is put into the three workflows (transfer), and the
early, best and last checkpoints of every cell are evaluated.
"""

from __future__ import annotations

import json
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from reference_trainer.checkpoint import write_atomically
from reference_trainer.children import Launch, run_all
from reference_trainer.config import Config, from_mapping, load
from reference_trainer.errors import SettingsError
from reference_trainer.grid_results import row_line, status, to_evaluate, write_summary
from reference_trainer.pretrain import base_key
from reference_trainer.progress import Progress
from reference_trainer.reading import merge
from roledrift import RoleDriftError
from roledrift.workflow import SHARED_POLICY

WORKFLOWS = ("eval_opt", "voting", "orch_workers")
ROUTINGS = {"sp": "shared", "ip": "isolated"}
TASKS = ("math", "code")
SCALES = ("S", "M", "L")

TRANSFERRED = {"eval_opt": "generator", "voting": "generator", "orch_workers": "worker"}
"""Workflow to the role that gets the adapter of the single role in a transfer."""

PROBLEMS = 100
"""Fewest problems on which checkpoints are evaluated, as in the paper's tables of texts."""

_REASON = 400
"""Characters of a failed run's last line that are printed: a few lines of a screen."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination.

    Attributes:
        workflow: One of :data:`WORKFLOWS`, or ``single`` for the control.
        routing: ``sp`` (shared policy), ``ip`` (isolated policies), ``sa`` for the control, or
            ``transfer`` for the control's adapter in a workflow.
        task: One of :data:`TASKS`.
        scale: Size of the base model.
    """

    workflow: str
    routing: str
    task: str
    scale: str

    @property
    def name(self) -> str:
        """``voting-ip-math-M``; the control is ``single-sa-math-M``."""
        return f"{self.workflow}-{self.routing}-{self.task}-{self.scale}"


@dataclass(frozen=True, slots=True)
class Job:
    """One cell with one seed.

    Attributes:
        cell: The cell.
        seed: Of the run.
        config: The run; None if this version cannot run it.
        problem: Why not, else empty.
        source: Name of the run whose adapter a transfer starts from; empty for a training.
    """

    cell: Cell
    seed: int
    config: Config | None
    problem: str
    source: str = ""

    @property
    def name(self) -> str:
        """Of the run directory: ``voting-ip-math-M-seed0``."""
        return f"{self.cell.name}-seed{self.seed}"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which part of the grid is meant.

    Attributes:
        only: Patterns of cell names, any of them; empty for all.
        seeds: One run per cell and seed.
        shard: Number of this part from 1, and how many parts there are.
        overrides: Settings laid over those of every cell.
    """

    only: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    shard: tuple[int, int] = (1, 1)
    overrides: Mapping[str, Any] | None = None


def cells(scales: Sequence[str] = SCALES) -> list[Cell]:
    """All cells, small scales first."""
    listed = []
    for scale in scales:
        for task in TASKS:
            listed.append(Cell("single", "sa", task, scale))
            listed += [
                Cell(workflow, way, task, scale) for workflow in WORKFLOWS for way in ROUTINGS
            ]
    return listed


def choose(every: Sequence[Cell], choice: Choice) -> list[tuple[Cell, int]]:
    """The cells and seeds of ``choice``; the shards of a choice are disjoint and complete.

    Raises:
        SettingsError: If no cell matches, or there is no such shard.
    """
    number, count = choice.shard
    if not 1 <= number <= count:
        raise SettingsError(f"--shard {number}/{count}: shards are 1/{count} to {count}/{count}")
    chosen = [
        cell
        for cell in every
        if not choice.only or any(fnmatch(cell.name, pattern) for pattern in choice.only)
    ]
    if not chosen:
        names = ", ".join(cell.name for cell in every)
        raise SettingsError(f"no cell matches {list(choice.only)}; the cells are {names}")
    return [(cell, seed) for cell in chosen for seed in choice.seeds][number - 1 :: count]


def list_jobs(preset: str, choice: Choice) -> list[Job]:
    """The runs of ``choice``, and the transfers of its controls.

    A cell that this version cannot run says why instead of failing.

    Raises:
        SettingsError: If the preset or the choice is wrong.
    """
    settings = load_grid(preset)
    every = cells(tuple(settings["scale"]))
    jobs = [_job(settings, choice, cell, seed) for cell, seed in choose(every, choice)]
    for single in [job for job in jobs if job.cell.workflow == "single" and job.config]:
        for workflow in WORKFLOWS:
            cell = Cell(workflow, "transfer", single.cell.task, single.cell.scale)
            jobs.append(_job(settings, choice, cell, single.seed, source=single.name))
    return jobs


def _job(
    settings: Mapping[str, Any], choice: Choice, cell: Cell, seed: int, *, source: str = ""
) -> Job:
    values = merge(cell_settings(settings, cell), choice.overrides or {})
    values = merge(values, {"name": f"{cell.name}-seed{seed}", "seed": seed})
    if source:
        values = merge(values, {"train": {"steps": 0}, "routing": "isolated"})
    try:
        return Job(cell, seed, from_mapping(values), "", source)
    except RoleDriftError as error:
        return Job(cell, seed, None, str(error), source)


def load_grid(preset: str) -> Mapping[str, Any]:
    """The tables of ``presets/grids/<preset>.toml``.

    Raises:
        SettingsError: If there is none of that name.
    """
    if preset not in grids():
        raise SettingsError(f"no grid preset {preset!r}; there are {grids()}")
    return tomllib.loads((_folder() / f"{preset}.toml").read_text("utf-8"))


def grids() -> list[str]:
    """Names of the grid presets."""
    return sorted(file.name[:-5] for file in _folder().iterdir() if file.name.endswith(".toml"))


def _folder() -> Traversable:
    return resources.files("reference_trainer") / "presets" / "grids"


def cell_settings(settings: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    """Plain settings of ``cell``: common, then by scale, task, workflow, and the last two."""
    values: dict[str, Any] = merge(settings.get("common", {}), {})
    both = f"{cell.workflow}-{cell.task}"
    tables = {"scale": cell.scale, "task": cell.task, "workflow": cell.workflow, "both": both}
    for table, key in tables.items():
        values = merge(values, settings.get(table, {}).get(key, {}))
    routing = ROUTINGS.get(cell.routing, "shared")
    return merge(values, {"workflow": cell.workflow, "routing": routing})


def load_source(source: str, overrides: Mapping[str, Any]) -> Config:
    """A run by the name of a cell, ``<grid>/<cell>``, or by preset or file as :func:`config.load`.

    Raises:
        SettingsError: As there, or if the grid has no such cell.
    """
    preset, slash, name = source.partition("/")
    if not slash or Path(source).is_file() or preset not in grids():
        return load(source, overrides)
    settings = load_grid(preset)
    known = {cell.name: cell for cell in cells(tuple(settings["scale"]))}
    if name not in known:
        raise SettingsError(f"no cell {name!r} in grid {preset!r}; there are {', '.join(known)}")
    values = merge({"name": name}, cell_settings(settings, known[name]))
    return from_mapping(merge(values, overrides))


def run_grid(jobs: Sequence[Job], *, out: Path, cache: Path, launch: Launch) -> int:
    """Warm up the base models, train every cell that is not finished, transfer, evaluate.

    A cell that fails does not stop the others; running the same command again takes up every cell
    where it was. An interrupt ends the processes that run; ``grid.json`` is written all the same.

    Args:
        jobs: From :func:`list_jobs`.
        out: Gets one run directory per job, and ``grid.json`` with all that are there.
        cache: Of warmed-up base models.
        launch: How many trainings run at the same time, with how many processes, on which devices;
            all else is a process of its own.

    Returns:
        0, or 1 if a cell failed or cannot be run.
    """
    out.mkdir(parents=True, exist_ok=True)
    ready = [job for job in jobs if job.config is not None]
    todo = [job for job in ready if status(out / job.name) != "finished"]
    for job in jobs:
        if job.config is None:
            print(f"grid: {job.name} cannot be run: {job.problem}", flush=True)
    print(f"grid: {len(ready) - len(todo)} of {len(jobs)} finished, {len(todo)} to do", flush=True)
    try:
        failed = _run_stages(ready, todo, out=out, cache=cache, launch=launch)
    except KeyboardInterrupt:
        write_summary(out)
        finished = sum(status(out / job.name) == "finished" for job in ready)
        raise KeyboardInterrupt(
            f"{finished} of {len(jobs)} runs are finished. The same command goes on from the "
            "latest checkpoints of the others"
        ) from None
    for row in write_summary(out):
        print(row_line(row))
    missing = len(jobs) - len(ready)
    print(f"grid: {len(failed)} failed, {missing} cannot be run; results in {out / 'grid.json'}")
    return 1 if failed or missing else 0


def _run_stages(
    ready: Sequence[Job], todo: Sequence[Job], *, out: Path, cache: Path, launch: Launch
) -> list[str]:
    """Base models, cells, transfers, evaluations; the names of what failed."""
    common = ["--cache", str(cache)]

    def stage(title: str, commands: Mapping[str, Sequence[str]], ranks: int = 1) -> list[str]:
        lines = [[*command, *common] for command in commands.values()]
        return _stage(title, list(commands), lines, out=out, launch=replace(launch, ranks=ranks))

    def training(job: Job) -> list[str]:
        return ["train", str(_write_config(job, out)), "--out", str(out / job.name), "--resume"]

    bases: dict[str, Job] = {}
    for job in todo:
        assert job.config is not None
        key = base_key(job.config)
        if key is not None and not (cache / key).is_dir():
            bases.setdefault(key, job)
    files = {job.name: _write_config(job, out) for job in bases.values()}
    stage("base models", {name: ["pretrain", str(file)] for name, file in files.items()})
    failed = stage(
        "cells",
        {job.name: training(job) for job in todo if not job.source},
        ranks=launch.ranks,
    )
    transfers = [job for job in todo if job.source]
    for job in transfers:
        if job.source in failed:
            print(f"grid: {job.name} failed: it needs the adapter of {job.source}", flush=True)
    left = [job for job in transfers if job.source not in failed]
    failed += [job.name for job in transfers if job not in left]
    failed += stage("transfers", {job.name: training(job) for job in left})
    evaluations = {
        f"{job.name}-evaluation": [
            *("evaluate", str(out / job.name), "--milestones", "--problems", str(_problems(job))),
        ]
        for job in ready
        if to_evaluate(out / job.name)
    }
    return failed + stage("evaluations", evaluations)


def _problems(job: Job) -> int:
    assert job.config is not None
    return max(PROBLEMS, job.config.validation.problems)


def _write_config(job: Job, out: Path) -> Path:
    """What the child reads; also what a person can start by hand."""
    assert job.config is not None
    config = job.config
    if job.source:
        adapter = out / job.source / "trainer" / "adapters" / SHARED_POLICY
        roles = {TRANSFERRED[job.cell.workflow]: str(adapter)}
        config = replace(config, initial_adapters=roles)
    folder = out / "configs"
    folder.mkdir(exist_ok=True)
    file = folder / f"{job.name}.json"
    write_atomically(file, json.dumps(asdict(config), indent=2) + "\n")
    return file


def _stage(
    title: str,
    names: Sequence[str],
    commands: Sequence[Sequence[str]],
    *,
    out: Path,
    launch: Launch,
) -> list[str]:
    """Run commands, their lines into ``logs/<name>.txt``; names of those that failed."""
    if not commands:
        return []
    logs = out / "logs"
    logs.mkdir(exist_ok=True)
    last = [""] * len(commands)
    ended: list[int] = []

    def say(number: int, line: str) -> None:
        last[number] = line or last[number]
        with (logs / f"{names[number]}.txt").open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def done(number: int, code: int) -> None:
        ended.append(number)
        progress.advance(len(ended), names[number] if code == 0 else f"{names[number]} failed")

    with Progress(f"grid: {title}", total=len(commands)) as progress:
        codes = run_all(commands, launch=launch, say=say, done=done)
    failed = [number for number, code in enumerate(codes) if code]
    for number in failed:
        reason = textwrap.shorten(last[number], _REASON, placeholder=" ...") or "no output"
        print(f"grid: {names[number]} failed with exit code {codes[number]}: {reason}")
        print(f"  its output is in {logs / names[number]}.txt")
    return [names[number] for number in failed]
