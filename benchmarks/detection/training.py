"""Trains the suite's runs, one after another, and keeps them as recordings.

``python -m benchmarks.detection.training --work runs/detection`` can be stopped at any time and
goes on where it was: what has a recording is not trained again. A scenario takes up a copy of its
trunk at the checkpoint before the onset, so runs of one seed share their start. Several processes
share the runs with ``--workers 2 --worker 0`` and ``--workers 2 --worker 1``; warm up the base
models first, with ``--bases``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from transformers.utils import logging

from benchmarks.detection.recordings import exists, record
from benchmarks.detection.suite import Place, Scenario, Suite, load_suite
from reference_trainer.checkpoint import checkpoints
from reference_trainer.config import Config
from reference_trainer.pretrain import base_folder, base_key
from reference_trainer.run_folder import RunFolder
from reference_trainer.setup import prepare
from reference_trainer.trainer import train


@dataclass(frozen=True, slots=True)
class Job:
    """One run to be recorded."""

    scenario: Scenario
    place: Place

    @property
    def group(self) -> tuple[str, Place]:
        """Jobs of a group take up one trunk, so one worker does them."""
        alone = self.scenario.from_start
        return (self.scenario.name if alone else self.scenario.trunk, self.place)


def queue(suite: Suite, only: Sequence[str] = ()) -> list[Job]:
    """All planned runs: a round of every scenario before the next one, so that a part is of use.

    The trunk of a run is its healthy twin, and is trained anyway: it is recorded before it.
    """
    chosen = [scenario for scenario in suite.scenarios if not only or scenario.name in only]
    twins = {
        scenario.trunk: scenario
        for scenario in suite.scenarios
        if not scenario.settings and scenario.label == "healthy"
    }
    jobs: dict[tuple[str, Place], Job] = {}
    for number in range(max(len(scenario.rounds) for scenario in chosen)):
        for scenario in chosen:
            for place in scenario.rounds[number] if number < len(scenario.rounds) else ():
                twin = twins.get(scenario.trunk, scenario)
                for trained in (scenario,) if scenario.from_start else (twin, scenario):
                    jobs.setdefault((trained.name, place), Job(trained, place))
    return list(jobs.values())


def shares(jobs: Sequence[Job], workers: int) -> list[list[Job]]:
    """The jobs of each worker, in order; the same for the same suite, whatever is done already."""
    sizes = Counter(job.group for job in jobs)
    loads = [0] * workers
    owner: dict[tuple[str, Place], int] = {}
    for job in jobs:
        if job.group not in owner:
            least = loads.index(min(loads))
            owner[job.group] = least
            loads[least] += sizes[job.group]
    return [[job for job in jobs if owner[job.group] == number] for number in range(workers)]


def run(config: Config, out: Path, *, cache: Path, resume: bool = False) -> None:
    """Train one run."""
    train(prepare(config, cache=cache), out=out, resume=resume)


def trunk_of(suite: Suite, name: str, place: Place, *, work: Path, cache: Path) -> Path:
    """The folder of a trunk, trained to its end now if it is not there yet."""
    out = work / "trunks" / f"{name}-{place.base}-{place.seed}"
    if RunFolder(out).finished() is None:
        draft = work / f"trunk-{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        run(suite.config(name, place.seed, place.base), draft, cache=cache)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(out, ignore_errors=True)
        draft.rename(out)
    return out


def branch(trunk: Path, out: Path, config: Config, *, after: int) -> None:
    """Copy ``trunk`` as it was after iteration ``after``, as a run of ``config``."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(trunk, out)
    folder = RunFolder(out)
    (folder.path / "finished.json").unlink(missing_ok=True)
    for step, path in checkpoints(folder.checkpoints).items():
        if step > after:
            shutil.rmtree(path)
    described = {"stress": config.stress.label, "config": asdict(config)}
    (folder.path / "config.json").write_text(json.dumps(described, indent=2, default=str))


def make(suite: Suite, job: Job, *, work: Path, cache: Path) -> None:
    """Train one run of the suite and record it."""
    scenario, seed, base = job.scenario, job.place.seed, job.place.base
    if not scenario.settings:
        trunk = trunk_of(suite, scenario.trunk, job.place, work=work, cache=cache)
        record(trunk, scenario.name, seed, base=base)
        return
    out = work / f"branch-{os.getpid()}"
    config = suite.config(scenario, seed, base)
    if scenario.from_start:
        shutil.rmtree(out, ignore_errors=True)
    else:
        trunk = trunk_of(suite, scenario.trunk, job.place, work=work, cache=cache)
        branch(trunk, out, config, after=suite.onset - 1)
    run(config, out, cache=cache, resume=not scenario.from_start)
    record(out, scenario.name, seed, base=base)


def bases(suite: Suite, *, cache: Path, worker: int, workers: int) -> None:
    """Warm up the base models that are not there yet."""
    configs: dict[str | None, Config] = {}
    for job in queue(suite):
        config = suite.config(job.scenario, job.place.seed, job.place.base)
        configs.setdefault(base_key(config), config)
    for number, config in enumerate(configs.values()):
        if number % workers == worker:
            base_folder(config, cache)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("runs/detection"))
    parser.add_argument("--cache", type=Path, default=Path("runs/.cache"))
    parser.add_argument("--seeds", type=int, nargs="*", help="only these; all if none is named")
    parser.add_argument("--worker", type=int, default=0, help="number of this process, from 0")
    parser.add_argument("--workers", type=int, default=1, help="processes that share the runs")
    parser.add_argument("--bases", action="store_true", help="warm up the base models, no more")
    parser.add_argument("only", nargs="*", help="scenarios; all if none is named")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    suite = load_suite()
    if options.bases:
        bases(suite, cache=options.cache, worker=options.worker, workers=options.workers)
        return 0
    for job in shares(queue(suite, options.only), options.workers)[options.worker]:
        seed, base = job.place.seed, job.place.base
        if exists(job.scenario.name, seed, base=base) or seed not in (options.seeds or [seed]):
            continue
        wall, cpu = time.monotonic(), time.process_time()
        make(suite, job, work=options.work, cache=options.cache)
        wall, cpu = time.monotonic() - wall, time.process_time() - cpu
        name = f"{job.scenario.name} base {base} seed {seed}"
        print(f"{name}: {cpu:.0f} CPU s, {wall:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
