"""``python -m benchmarks.reproduction run | page | list``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers.utils import logging

from benchmarks.reproduction.outcomes import FOLDER, load
from benchmarks.reproduction.page import write_page
from benchmarks.reproduction.plan import load_plan
from benchmarks.reproduction.running import run_plan
from reference_trainer.children import termination_interrupts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    options = _parser().parse_args(arguments)
    if options.command == "page":
        write_page(results=options.results)
        return 0
    plan = load_plan()
    jobs = plan.jobs(options.depth, only=options.only, rounds=options.rounds)
    jobs = [job for job in jobs if not options.bases or job.base in options.bases]
    number, count = options.shard
    jobs = jobs[number - 1 :: count]
    if options.command == "list":
        done = {
            (row["experiment"], row["arm"], row["base"], row["seed"])
            for row in load(options.results)
        }
        for job in jobs:
            made = (job.experiment, job.arm, job.base, job.seed) in done
            print(f"{'made' if made else 'to do':6} {job.name}")
        return 0
    torch.set_num_threads(1)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with termination_interrupts():
            run_plan(plan, jobs, work=options.work, cache=options.cache, results=options.results)
    except KeyboardInterrupt:
        print(
            "interrupted: the same command goes on with the run that was under way", file=sys.stderr
        )
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduction", description=__doc__)
    parser.add_argument("command", choices=("run", "list", "page"))
    parser.add_argument("--depth", choices=("quick", "full"), default="quick")
    parser.add_argument(
        "--shard", type=_shard, default=(1, 1), metavar="I/N", help="a part of the runs"
    )
    parser.add_argument(
        "--only",
        nargs="*",
        default=(),
        metavar="NAME",
        help="patterns of experiment or experiment/arm",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="the first N rounds alone")
    parser.add_argument("--bases", nargs="*", type=int, default=(), metavar="SEED")
    parser.add_argument("--work", type=Path, default=Path("runs/reproduction"))
    parser.add_argument("--cache", type=Path, default=Path("runs/.cache"))
    parser.add_argument("--results", type=Path, default=FOLDER)
    return parser


def _shard(text: str) -> tuple[int, int]:
    number, slash, count = text.partition("/")
    if slash and number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise argparse.ArgumentTypeError(
        f"{text!r} is no shard: write 1/{count or 'N'} for the first part"
    )


if __name__ == "__main__":
    sys.exit(main())
