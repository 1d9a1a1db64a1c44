"""``python -m benchmarks.peers``: every tool on every log; writes ``docs/peers_benchmark.md``."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers.judges import JUDGES
from benchmarks.peers.scenarios import Log, logs

PAGE = Path(__file__).parents[2] / "docs" / "peers_benchmark.md"
_DISTRIBUTIONS = {"rl-doctor": "rldoctor", "rlprobe": "rlprobe", "rlwatch": "rlwatch"}


@dataclass(frozen=True, slots=True)
class Result:
    """What one tool said about one log, and the CPU seconds that it took."""

    log: Log
    tool: str
    found: frozenset[str]
    seconds: float


def run(seeds: int) -> list[Result]:
    """Every tool on every log."""
    results = []
    for log in logs(range(seeds)):
        for tool, judge in JUDGES.items():
            start = time.process_time()
            found = judge(log)
            results.append(Result(log, tool, found, time.process_time() - start))
    return results


def page(results: Sequence[Result], seeds: int) -> str:
    """The results as a page."""
    tools = list(JUDGES)
    head = "| " + " | ".join(["log", *tools]) + " |\n|---|" + "--:|" * len(tools) + "\n"
    by_scenario: Mapping[tuple[str, str], list[Result]] = _grouped(results)
    rows = "".join(_row(key, group, tools) for key, group in by_scenario.items())
    versions = ", ".join(f"{tool} {version(name)}" for tool, name in _DISTRIBUTIONS.items())
    return (
        "# Beside other monitors\n\n"
        "What roledrift and three other monitors say about simulated logs of one policy: those of "
        "rl-doctor's and rlprobe's own generators, and some of ours.\n\n"
        f"{seeds} seeds each, every tool at its defaults ({versions}). A failure counts as found "
        "if a tool raises anything about it (rl-doctor: WARN or worse). Of roledrift, only "
        "findings count that name this failure; the list is in `benchmarks/peers/scenarios.py`. "
        "In healthy logs, everything that is raised counts as a false alarm.\n\n"
        f"{head}{_sums(results, tools)}{rows}\n"
        "Simulated curves are smoother than real ones. The generators of rl-doctor and rlprobe "
        "were known when roledrift's thresholds were written, and theirs are tuned on them, so "
        "the table shows that nothing is missing, not how often anybody is right on real runs. "
        "rlwatch and rlprobe read fewer of the logged metrics than there are.\n\n"
        f"{_seconds(results, tools)}\n\n"
        "`make bench-peers` writes this page. How often roledrift is right on recorded trainings: "
        "[detection_benchmark.md](detection_benchmark.md).\n"
    )


def _grouped(results: Sequence[Result]) -> dict[tuple[str, str], list[Result]]:
    groups: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for one in results:
        groups[one.log.source, one.log.scenario].append(one)
    return groups


def right(result: Result) -> bool:
    """Whether a failure was found; of a healthy log, whether anything was raised."""
    if result.tool == "roledrift" and not result.log.healthy:
        return bool(result.found & set(result.log.accepted))
    return bool(result.found)


def _row(key: tuple[str, str], group: Sequence[Result], tools: Sequence[str]) -> str:
    cells = []
    for tool in tools:
        mine = [one for one in group if one.tool == tool]
        cells.append(f"{sum(map(right, mine))} of {len(mine)}")
    return f"| {key[0]}: `{key[1]}` | " + " | ".join(cells) + " |\n"


def _sums(results: Sequence[Result], tools: Sequence[str]) -> str:
    lines = ""
    for name, healthy in (("**failures found**", False), ("**healthy logs with an alarm**", True)):
        cells = []
        for tool in tools:
            mine = [one for one in results if one.tool == tool and one.log.healthy == healthy]
            cells.append(f"**{sum(map(right, mine))} of {len(mine)}**")
        lines += f"| {name} | " + " | ".join(cells) + " |\n"
    return lines


def _seconds(results: Sequence[Result], tools: Sequence[str]) -> str:
    steps = sum(len(one.log.rows) for one in results if one.tool == tools[0])
    told = []
    for tool in tools:
        spent = sum(one.seconds for one in results if one.tool == tool)
        told.append(f"{tool} {1000 * spent / steps * 5:.1f} s")
    return (
        "CPU seconds per 5,000 logged steps, of logs of 300 to 500 steps: "
        + ", ".join(told)
        + " (roledrift: reading the file, writing a run directory and judging every step)."
    )


def main() -> None:
    """Run and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args()
    given.out.write_text(page(run(given.seeds), given.seeds))


if __name__ == "__main__":
    main()
