"""The grid: every workflow with one adapter for all and one adapter each, by task and scale.

Three workflows x two routings x two tasks x three scales, and a single role without any workflow as
the control of every task and scale: 42 cells, each its own run directory and its own process.
"""

from __future__ import annotations

import json
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from reference_trainer.checkpoint import write_atomically
from reference_trainer.children import run_all
from reference_trainer.config import Config, from_mapping, load
from reference_trainer.errors import SettingsError
from reference_trainer.pretrain import base_key
from reference_trainer.progress import Progress
from reference_trainer.reading import merge
from reference_trainer.run_folder import RunFolder
from roledrift import RoleDriftError

WORKFLOWS = ("eval_opt", "voting", "orch_workers")
ROUTINGS = {"sp": "shared", "ip": "isolated"}
TASKS = ("math", "code")
SCALES = ("S", "M", "L")

_REASON = 400
"""Characters of a failed run's last line that are printed: a few lines of a screen."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination.

    Attributes:
        workflow: One of :data:`WORKFLOWS`, or ``single`` for the control.
        routing: ``sp`` (shared policy), ``ip`` (isolated policies), or ``sa`` for the control.
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
    """

    cell: Cell
    seed: int
    config: Config | None
    problem: str

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
    found = []
    for scale in scales:
        for task in TASKS:
            found.append(Cell("single", "sa", task, scale))
            found += [Cell(one, way, task, scale) for one in WORKFLOWS for way in ROUTINGS]
    return found


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


def plan(preset: str, choice: Choice) -> list[Job]:
    """The runs of ``choice``. A cell that this version cannot run says why instead of failing.

    Raises:
        SettingsError: If the preset or the choice is wrong.
    """
    settings = load_grid(preset)
    jobs = []
    for cell, seed in choose(cells(), choice):
        values = merge(cell_settings(settings, cell), choice.overrides or {})
        try:
            config = from_mapping(merge(values, {"name": f"{cell.name}-seed{seed}", "seed": seed}))
            jobs.append(Job(cell, seed, config, ""))
        except RoleDriftError as error:
            jobs.append(Job(cell, seed, None, str(error)))
    return jobs


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
    return sorted(one.name[:-5] for one in _folder().iterdir() if one.name.endswith(".toml"))


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


def run_grid(jobs: Sequence[Job], *, out: Path, cache: Path, parallel: int) -> int:
    """Warm up the base models, then train every cell that is not finished.

    A cell that fails does not stop the others; running the same command again takes up every cell
    where it was. An interrupt ends the processes that run; ``grid.json`` is written all the same.

    Args:
        jobs: From :func:`plan`.
        out: Gets one run directory per job, and ``grid.json`` with all that are there.
        cache: Of warmed-up base models.
        parallel: Processes at the same time.

    Returns:
        0, or 1 if a cell failed or cannot be run.
    """
    out.mkdir(parents=True, exist_ok=True)
    ready = [job for job in jobs if job.config is not None]
    todo = [job for job in ready if status(out / job.name) != "finished"]
    for job in jobs:
        if job.config is None:
            print(f"grid: {job.name} cannot be run by this version: {job.problem}", flush=True)
    print(f"grid: {len(ready) - len(todo)} of {len(jobs)} finished, {len(todo)} to do", flush=True)
    files = {job.name: _write_config(job, out) for job in todo}
    bases: dict[str, str] = {}
    for job in todo:
        assert job.config is not None
        key = base_key(job.config)
        if key is not None and not (cache / key).is_dir():
            bases.setdefault(key, job.name)
    common = ["--cache", str(cache)]
    warm_ups = [["pretrain", str(files[name]), *common] for name in bases.values()]
    trains = [
        ["train", str(files[job.name]), "--out", str(out / job.name), "--resume", *common]
        for job in todo
    ]
    try:
        _stage("base models", list(bases), warm_ups, out=out, parallel=parallel)
        failed = _stage("cells", [job.name for job in todo], trains, out=out, parallel=parallel)
    except KeyboardInterrupt:
        _write_summary(out)
        finished = sum(status(out / job.name) == "finished" for job in ready)
        raise KeyboardInterrupt(
            f"{finished} of {len(jobs)} runs are finished. The same command goes on from the "
            "latest checkpoints of the others"
        ) from None
    for row in _write_summary(out):
        print(_row_line(row))
    missing = len(jobs) - len(ready)
    print(f"grid: {len(failed)} failed, {missing} cannot be run; results in {out / 'grid.json'}")
    return 1 if failed or missing else 0


def status(run: Path) -> str:
    """``finished``, ``begun`` or ``new``."""
    folder = RunFolder(run)
    if folder.finished() is not None:
        return "finished"
    return "begun" if folder.holds_a_run() else "new"


def summary(out: Path) -> list[dict[str, Any]]:
    """What every run in ``out`` came to: accuracy before, best and last, where it stopped."""
    rows = []
    for run in sorted(one for one in out.iterdir() if RunFolder(one).holds_a_run()):
        trace = RunFolder(run).trace()
        curve = {
            row["step"]: row["validation"]["accuracy"] for row in trace if row.get("validation")
        }
        end = RunFolder(run).finished()
        rows.append(
            {
                "run": run.name,
                "status": status(run),
                "steps": trace[-1]["step"] if trace else 0,
                "stopped": "" if end is None else end["stopped"],
                "before": curve.get(0),
                "best": max(curve.values(), default=None),
                "last": curve[max(curve)] if curve else None,
            }
        )
    return rows


def _write_summary(out: Path) -> list[dict[str, Any]]:
    rows = summary(out)
    write_atomically(out / "grid.json", json.dumps(rows, indent=2) + "\n")
    return rows


def _row_line(row: Mapping[str, Any]) -> str:
    def text(name: str) -> str:
        return "  - " if row[name] is None else f"{row[name]:.3f}"

    accuracies = f"{text('before')} -> best {text('best')}, last {text('last')}"
    stopped = f", stopped: {row['stopped']}" if row["stopped"] else ""
    return f"  {row['run']:32} {row['status']:8} step {row['steps']:3}  {accuracies}{stopped}"


def _write_config(job: Job, out: Path) -> Path:
    """What the child reads; also what a person can start by hand."""
    assert job.config is not None
    folder = out / "configs"
    folder.mkdir(exist_ok=True)
    file = folder / f"{job.name}.json"
    write_atomically(file, json.dumps(asdict(job.config), indent=2) + "\n")
    return file


def _stage(
    title: str, names: Sequence[str], commands: Sequence[Sequence[str]], *, out: Path, parallel: int
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
        codes = run_all(commands, jobs=parallel, say=say, done=done)
    failed = [number for number, code in enumerate(codes) if code]
    for number in failed:
        reason = textwrap.shorten(last[number], _REASON, placeholder=" ...") or "no output"
        print(f"grid: {names[number]} failed with exit code {codes[number]}: {reason}")
        print(f"  its output is in {logs / names[number]}.txt")
    return [names[number] for number in failed]
