"""Replay the recorded runs through the detectors, judge them, and write the page.

``--seeds tune`` (the default) is for building: nothing is written. ``--seeds report`` looks at the
runs that nobody looked at while building: it writes the page, wants to know why, and notes the look
in ``looks.md``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.detection import goals, page, tables
from benchmarks.detection.evaluation import run_all
from benchmarks.detection.figures import measure
from benchmarks.detection.replays import AS_RECORDED
from benchmarks.detection.suite import load_suite
from benchmarks.detection.variants import VARIANTS


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", choices=("tune", "report"), default="tune")
    parser.add_argument(
        "--goals", action="store_true", help="also the table of goals, which takes every variant"
    )
    parser.add_argument("--why", default="", help="why the runs for reporting are looked at")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    reports = options.seeds == "report"
    if reports and not options.why:
        parser.error("--seeds report: say --why you look; it is noted in looks.md")
    start = time.monotonic()
    suite = load_suite()
    everything = reports or options.goals
    variants = tuple(VARIANTS) if everything else (AS_RECORDED,)
    runs = run_all(suite, options.seeds, variants=variants, processes=options.processes)
    if reports:
        page.note_look(options.why, len(runs.replayed))
    ours = runs.ours()
    for lines in (tables.scenarios(ours), tables.families(ours), tables.wrong(ours)):
        print("\n".join(lines), end="\n\n")
    if everything:
        figures = measure(runs, run_all(suite, "tune") if reports else runs)
        print("\n".join(goals.table(figures)))
        if reports:
            page.write(figures)
    broken = {name for run in runs.replayed.values() for name in run.faults}
    print(f"{len(runs.replayed)} runs in {time.monotonic() - start:.0f} s; broken: {broken or '-'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
