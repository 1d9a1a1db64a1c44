"""``python -m benchmarks.reproduction run | page | list``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import torch
from transformers.utils import logging

from benchmarks.reproduction.outcomes import FOLDER, Row, load
from benchmarks.reproduction.page import IMAGES, PAGE, write_page
from benchmarks.reproduction.plan import Job, load_plan
from benchmarks.reproduction.running import run_plan
from reference_trainer.children import termination_interrupts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    options = _parser().parse_args(arguments)
    if options.command == "page":
        if options.results == FOLDER:
            write_page()
        else:
            print(f"written: {_own_page(options.results)}")
        return 0
    plan = load_plan()
    jobs = plan.jobs(options.depth, only=options.only, rounds=options.rounds)
    jobs = [job for job in jobs if not options.bases or job.base in options.bases]
    number, count = options.shard
    jobs = jobs[number - 1 :: count]
    if options.command == "list":
        print("\n".join(listed(jobs, load(options.results))))
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


def _own_page(results: Path) -> Path:
    """Write the page of runs of one's own beside their results; its path."""
    page = results.parent / PAGE.name
    write_page(results=results, page=page, images=results.parent / "images" / IMAGES.name)
    docs = os.path.relpath(PAGE.parent, page.parent)
    text = re.sub(r"\]\((?!images/|#|https?:)", f"]({docs}/", page.read_text("utf-8"))
    page.write_text(text, "utf-8")
    return page


def listed(jobs: Sequence[Job], rows: Sequence[Row]) -> Iterator[str]:
    """Runs with their CPU time: of those to be made, that of runs like them; then the sums."""
    made = {(row["experiment"], row["arm"], row["base"], row["seed"]): row["cpu"] for row in rows}
    alike: dict[str, list[float]] = {}
    for (experiment, arm, _, _), cpu in made.items():
        for name in (experiment, f"{experiment}/{arm}"):
            alike.setdefault(name, []).append(cpu)
    sums: Counter[str] = Counter()
    for job in jobs:
        cpu = made.get((job.experiment, job.arm, job.base, job.seed))
        like = alike.get(f"{job.experiment}/{job.arm}") or alike.get(job.experiment)
        state = "made" if cpu is not None else "to do"
        cost = cpu if cpu is not None else median(like) if like else None
        sums[state] += 1
        sums[f"{state}, CPU s"] += round(cost or 0)
        sums["unknown"] += cost is None
        yield f"{state:6} {'?' if cost is None else f'{cost:.0f}':>4} CPU s  {job.name}"
    spent, left = (round(sums[f"{state}, CPU s"] / 60) for state in ("made", "to do"))
    yield (
        f"{sums['made']} made in {spent} CPU minutes, {sums['to do']} to do in about {left}. Not "
        f"counted: warm-ups, one to four minutes each, and {sums['unknown']} runs of experiments "
        "of which none was made"
    )


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
    parser.add_argument(
        "--results",
        type=Path,
        default=FOLDER,
        metavar="FOLDER",
        help="the committed ones if left out",
    )
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
