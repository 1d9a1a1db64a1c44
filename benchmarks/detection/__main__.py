"""Replay the recorded runs through the detectors, judge them, and write the page.

``--seeds tune`` (the default) is for building: nothing is written. ``--seeds report`` looks at the
runs that nobody looked at while building. It writes the page, and every look is noted in
``looks.md``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.detection.brief import brief, by_run, false_alarms, line
from benchmarks.detection.evaluation import Runs, run_all, tuned_rivals
from benchmarks.detection.scores import alarms
from benchmarks.detection.suite import load_suite
from benchmarks.detection.variants import VARIANTS

HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", choices=("tune", "report"), default="tune")
    parser.add_argument("--quick", action="store_true", help="as recorded only, without rivals")
    parser.add_argument("--runs", action="store_true", help="one line per run as well")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    start = time.monotonic()
    suite = load_suite()
    variants = ("as recorded",) if options.quick else tuple(VARIANTS)
    runs = run_all(suite, options.seeds, variants=variants, processes=options.processes)
    outcomes = runs.ours()
    print(brief(outcomes, "as recorded"), false_alarms(outcomes), sep="\n")
    if options.runs:
        print(by_run(outcomes))
    if not options.quick:
        print(_others(runs))
    broken = {name for run in runs.replayed.values() for name in run.faults}
    print(f"{len(runs.replayed)} runs in {time.monotonic() - start:.0f} s; broken: {broken or '-'}")
    return 0


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
