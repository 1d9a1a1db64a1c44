"""Replay the recorded runs through the detectors, judge them, and write the page.

``--seeds tune`` (the default) is for building: nothing is written. ``--seeds report`` looks at the
runs that nobody looked at while building: it writes the page, wants to know why, and notes the look
in ``looks.md``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.detection import goals, page
from benchmarks.detection.brief import brief, by_run, false_alarms, line
from benchmarks.detection.evaluation import Runs, run_all, tuned_rivals
from benchmarks.detection.figures import SIMULATIONS, measure
from benchmarks.detection.replays import AS_RECORDED
from benchmarks.detection.scores import alarms
from benchmarks.detection.suite import load_suite
from benchmarks.detection.variants import VARIANTS


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", choices=("tune", "report"), default="tune")
    parser.add_argument("--quick", action="store_true", help="as recorded only, without rivals")
    parser.add_argument("--runs", action="store_true", help="one line per run as well")
    parser.add_argument("--goals", action="store_true", help="the table of goals as well")
    parser.add_argument("--why", default="", help="why the runs for reporting are looked at")
    parser.add_argument(
        "--before", type=Path, help="write the goals' figures there: for older detectors"
    )
    parser.add_argument("--simulations", type=Path, default=SIMULATIONS)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    if options.seeds == "report" and not options.why:
        parser.error("--seeds report: say --why you look; it is noted in looks.md")
    start = time.monotonic()
    suite = load_suite()
    variants = (AS_RECORDED,) if options.quick else tuple(VARIANTS)
    runs = run_all(suite, options.seeds, variants=variants, processes=options.processes)
    if options.seeds == "report":
        page.note_look(options.why, len(runs.replayed))
    _tell(runs, options)
    if not options.quick and (options.goals or options.before or options.seeds == "report"):
        tune = run_all(suite, "tune") if options.seeds == "report" else runs
        figures = measure(runs, tune, options.simulations)
        reached = goals.goals(figures)
        print("\n".join(f"{what}: {now}" for what, now in reached.items()))
        if options.before:
            options.before.write_text(json.dumps(reached, indent=1) + "\n", "utf-8")
        elif options.seeds == "report":
            page.write(figures)
    elif not options.quick:
        print(_others(runs))
    broken = {name for run in runs.replayed.values() for name in run.faults}
    print(f"{len(runs.replayed)} runs in {time.monotonic() - start:.0f} s; broken: {broken or '-'}")
    return 0


def _tell(runs: Runs, options: argparse.Namespace) -> None:
    outcomes = runs.ours()
    print(brief(outcomes, AS_RECORDED))
    if options.seeds == "tune":
        print(false_alarms(outcomes))
    if options.runs:
        print(by_run(outcomes))


def _others(runs: Runs) -> str:
    """Variants of the records and rivals, a line each."""
    lines = []
    for scale, rivals in tuned_rivals(runs).items():
        lines.append(f"== {scale} alerts (rivals: thresholds chosen on these very runs)")
        for name in VARIANTS:
            outcomes = runs.ours(name)
            if name.startswith("engine"):
                lines.append(f"{name}: healthy {alarms(outcomes, scale).healthy}")
            else:
                lines.append(line(outcomes, name, scale))
        lines += [line(runs.rival(tuned), f"| {tuned.rival.name}", scale) for tuned in rivals]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
