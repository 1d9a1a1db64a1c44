"""Trains the suite's runs, one after another, and keeps them as recordings.

``python -m benchmarks.detection.training --work runs/detection`` can be stopped at any time and
goes on where it was: what has a recording is not trained again. A scenario takes up a copy of its
trunk at the checkpoint before the onset, so runs of one seed share their start.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from transformers.utils import logging

from benchmarks.detection.recordings import FOLDER, exists, record
from benchmarks.detection.suite import Scenario, Suite, load_suite
from reference_trainer.checkpoint import checkpoints
from reference_trainer.config import Config
from reference_trainer.run_folder import RunFolder
from reference_trainer.setup import prepare
from reference_trainer.trainer import train


def queue(suite: Suite, only: Sequence[str]) -> Iterator[tuple[Scenario, int]]:
    """All runs: one seed of every scenario before the next seed, so that a part is of use."""
    chosen = [one for one in suite.scenarios if not only or one.name in only]
    orders = {one.name: _in_turns(one.tune, one.report) for one in chosen}
    for place in range(max(map(len, orders.values()))):
        for scenario in chosen:
            if place < len(orders[scenario.name]):
                yield scenario, orders[scenario.name][place]


def _in_turns(tune: Sequence[int], report: Sequence[int]) -> list[int]:
    """One for tuning, two for the report, and so on."""
    order: list[int] = []
    tune, report = list(tune), list(report)
    while tune or report:
        order += tune[:1] + report[:2]
        tune, report = tune[1:], report[2:]
    return order


def run(config: Config, out: Path, *, cache: Path, resume: bool = False) -> None:
    """Train one run."""
    train(prepare(config, cache=cache), out=out, resume=resume)


def trunk_of(suite: Suite, name: str, seed: int, *, work: Path, cache: Path) -> Path:
    """The folder of a trunk, trained to its end now if it is not there yet."""
    out = work / "trunks" / f"{name}-{seed}"
    config = suite.config(name, seed)
    if RunFolder(out).finished() is None:
        shutil.rmtree(out, ignore_errors=True)
        run(config, out, cache=cache)
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


def make(suite: Suite, scenario: Scenario, seed: int, *, work: Path, cache: Path) -> None:
    """Train one run of the suite and record it."""
    trunk = trunk_of(suite, scenario.trunk, seed, work=work, cache=cache)
    if not scenario.settings:
        record(trunk, scenario.name, seed)
        return
    out = work / "branch"
    config = suite.config(scenario, seed)
    branch(trunk, out, config, after=suite.onset - 1)
    run(config, out, cache=cache, resume=True)
    record(out, scenario.name, seed)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("runs/detection"))
    parser.add_argument("--cache", type=Path, default=Path("runs/.cache"))
    parser.add_argument("--again", action="store_true", help="remove all recordings first")
    parser.add_argument("--seeds", type=int, nargs="*", help="only these; all if none is named")
    parser.add_argument("only", nargs="*", help="scenarios; all if none is named")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if options.again:
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.rmtree(options.work, ignore_errors=True)
    suite = load_suite()
    for scenario, seed in queue(suite, options.only):
        if exists(scenario.name, seed) or seed not in (options.seeds or [seed]):
            continue
        wall, cpu = time.monotonic(), time.process_time()
        make(suite, scenario, seed, work=options.work, cache=options.cache)
        wall, cpu = time.monotonic() - wall, time.process_time() - cpu
        print(f"{scenario.name} seed {seed}: {cpu:.0f} CPU s, {wall:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
