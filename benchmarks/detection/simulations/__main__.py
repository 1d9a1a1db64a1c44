"""Simulate healthy runs and the paper's cells, and say how often what is told.

Writes ``simulations.json`` beside the results of the recorded runs, unless only a part is asked for
or nothing is to be written (``--dry``).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.detection import tables
from benchmarks.detection.simulations import cells, healthy
from benchmarks.detection.simulations.rows import row_of
from benchmarks.detection.simulations.trials import Tried, try_all

FILE = Path(__file__).parents[1] / "simulations.json"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="times the number of runs")
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    begin = time.monotonic()
    every = (*healthy.trials(options.scale), *cells.trials(options.scale))
    wanted = [trial for trial in every if options.only.lower() in trial.cell.lower()]
    results = try_all(wanted, options.processes)
    groups: dict[str, list[Tried]] = {}
    for result in results:
        groups.setdefault(result.trial.cell, []).append(result)
    rows = [row_of(cell, runs).plain() for cell, runs in groups.items()]
    print("\n".join(tables.simulated(rows)))
    broken = Counter(name for result in results for name in result.faults)
    steps = sum(result.trial.plan.steps for result in results)
    judged = sum(result.seconds for result in results)
    print(
        f"{len(results)} runs, {steps} steps in {time.monotonic() - begin:.0f} s; "
        f"{1e3 * judged / max(steps, 1):.1f} ms per step to judge; broken: {dict(broken) or '-'}"
    )
    if not options.dry and not options.only:
        FILE.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
