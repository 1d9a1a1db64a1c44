"""`python -m benchmarks.detection`: replay the recordings, judge them, write the results."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.detection import panel_runs
from benchmarks.detection.judging import Finding, judge, score
from benchmarks.detection.recordings import exists, load
from benchmarks.detection.rivals import RIVALS
from benchmarks.detection.suite import Suite, load_suite
from benchmarks.detection.tables import OURS, Method, markdown, plain
from benchmarks.detection.tuning import LEAST_RATE, Run, tune

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "detection_benchmark.md"
MARK = "<!-- results: written by `make bench-detection` -->"


def runs_of(suite: Suite, which: str) -> list[Run]:
    """The recorded runs of the seeds for ``tune`` or ``report``."""
    return [
        (scenario, load(scenario.name, seed))
        for scenario in suite.scenarios
        for seed in getattr(scenario, which)
        if exists(scenario.name, seed)
    ]


def ours(runs: Sequence[Run]) -> dict[tuple[str, int], list[Finding]]:
    """What the panel says about every run."""
    return {
        (scenario.name, recording.seed): panel_runs.findings(recording)
        for scenario, recording in runs
    }


def in_words(found: dict[tuple[str, int], list[Finding]], names: Sequence[str]) -> dict[str, str]:
    """What was told per scenario, with how often."""
    words = {}
    for name in names:
        counts: Counter[str] = Counter()
        for (scenario, _), findings in found.items():
            if scenario == name:
                counts.update({f"{one.level} {one.name} ({one.role})" for one in findings})
        often = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
        words[name] = "; ".join(f"{times}x {what}" for what, times in often)
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE, help="folder for results.md and .json")
    parser.add_argument("--ours", action="store_true", help="our panel alone, nothing is written")
    parser.add_argument("--seeds", choices=("tune", "report"), help="with --ours: which runs")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    suite = load_suite()
    names = [one.name for one in suite.scenarios]
    runs = {which: runs_of(suite, which) for which in ("tune", "report")}
    found = {which: ours(some) for which, some in runs.items()}
    outcomes = {
        which: [
            judge(scenario, run, found[which][scenario.name, run.seed], onset=suite.onset)
            for scenario, run in some
        ]
        for which, some in runs.items()
    }
    methods = [Method(OURS, "defaults", outcomes["tune"], outcomes["report"])]
    if options.ours:
        which = options.seeds or "tune"
        shown = [Method(OURS, "defaults", [], outcomes[which])]
        print(markdown(shown, in_words(found[which], names), steps=suite.steps))
        return 0
    rate = max(LEAST_RATE, score(outcomes["tune"], steps=suite.steps).errors or 0.0)
    for rival in RIVALS:
        best = tune(rival, runs["tune"], onset=suite.onset, steps=suite.steps, rate=rate)
        settings = f"threshold {best.threshold:.3g} on {best.statistics}"
        results = [best.outcomes(some, onset=suite.onset) for some in runs.values()]
        methods.append(Method(rival.name, settings, *results))
    page = markdown(methods, in_words(found["report"], names), steps=suite.steps)
    (options.out / "results.md").write_text(page, "utf-8")
    body = plain(methods, steps=suite.steps)
    (options.out / "results.json").write_text(json.dumps(body, indent=1) + "\n", "utf-8")
    if options.out == HERE:
        text, _, _ = PAGE.read_text("utf-8").partition(MARK)
        PAGE.write_text(f"{text}{MARK}\n\n{page}", "utf-8")
    print(page)
    print(f"{sum(map(len, runs.values()))} runs in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
