"""``python -m benchmarks.peers``: every tool on every log; writes ``docs/peers_benchmark.md``."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers.engines import of_martingale
from benchmarks.peers.judges import JUDGES, Judge, rl_doctor
from benchmarks.peers.recorded import Run, runs
from benchmarks.peers.rules import of_rlwatch
from benchmarks.peers.scenarios import Log, of_ours, of_rl_doctor, of_rlprobe

PAGE = Path(__file__).parents[2] / "docs" / "peers_benchmark.md"
_DISTRIBUTIONS = {
    "rl-doctor": "rldoctor",
    "rlprobe": "rlprobe",
    "rlwatch": "rlwatch",
    "martingale": "martingale",
}
_SOURCES = (of_rl_doctor, of_rlprobe, of_rlwatch, of_martingale, of_ours)
_KINDS = {"failure": "failures", "healthy": "healthy", "hard negative": "hard negatives"}
_ON_RECORDED: Mapping[str, Judge] = {
    "rl-doctor, WARN": rl_doctor,
    "rl-doctor, CRITICAL": partial(rl_doctor, critical=True),
    "rlprobe": JUDGES["rlprobe"],
    "rlwatch": JUDGES["rlwatch"],
}


@dataclass(frozen=True, slots=True)
class Result:
    """What one tool said about one log, and the CPU seconds that it took."""

    log: Log
    tool: str
    findings: frozenset[str]
    seconds: float


@dataclass(frozen=True, slots=True)
class Rival:
    """Whether a tool says anything about a recorded run.

    Attributes:
        together: Of the log of all roles.
        apart: Of any role's log, an instance of the tool for each; None if that was not asked.
    """

    together: bool
    apart: bool | None


def logs(seeds: int) -> Iterator[Log]:
    """Every scenario of every source, for each seed."""
    for seed in range(seeds):
        for source in _SOURCES:
            yield from source(seed)


def run(seeds: int) -> list[Result]:
    """Every tool on every simulated log that it can read."""
    results = []
    for log in logs(seeds):
        for tool, judge in JUDGES.items():
            start = time.process_time()
            named = judge(log)
            if named is not None:
                results.append(Result(log, tool, named, time.process_time() - start))
    return results


def on_recorded(recorded: Sequence[Run]) -> dict[str, list[Rival]]:
    """Every tool on every recorded run; ours on what the others see, too."""
    rivals: dict[str, list[Rival]] = defaultdict(list)
    for run in recorded:
        for tool, judge in _ON_RECORDED.items():
            apart = any(judge(log) for log in run.apart)
            rivals[tool].append(Rival(bool(judge(run.together)), apart))
        alone = (JUDGES["roledrift"](run.together) or frozenset()) - {"no verdict"}
        serious = [line for line in run.findings if not line.startswith("suspicious")]
        rivals["roledrift, any finding"].append(Rival(bool(alone), bool(run.findings)))
        rivals["roledrift, failing or input problem"].append(Rival(False, bool(serious)))
    return dict(rivals)


def page(results: Sequence[Result], seeds: int, rivals: str) -> str:
    """The results as a page."""
    tools = list(JUDGES)
    head = "| " + " | ".join(["log", *tools]) + " |\n|---|" + "--:|" * len(tools) + "\n"
    rows = "".join(_row(key, group, tools) for key, group in _grouped(results).items())
    versions = ", ".join(f"{tool} {version(name)}" for tool, name in _DISTRIBUTIONS.items())
    return (
        "# Beside other monitors\n\n"
        "What roledrift and four other monitors say about simulated logs of one policy, and about "
        "our recorded runs of several roles.\n\n"
        "## Simulated logs of one policy\n\n"
        f"{seeds} seeds each, every tool at its defaults ({versions}). The logs of rl-doctor and "
        "rlprobe are made by their own generators. Those of rlwatch show what its rules describe, "
        "and those of martingale what its alarms are for: `-` is a tool that cannot read a log. A "
        "failure counts as found if a tool raises anything about it (rl-doctor: WARN or worse). Of "
        "roledrift, only findings count that name this failure; the lists are in "
        "`benchmarks/peers/`. In healthy logs, everything that is raised counts as a false alarm."
        f"\n\n{head}{_sums(results, tools)}{rows}\n"
        "Simulated curves are smoother than real ones. The generators of rl-doctor and rlprobe "
        "were known when roledrift's thresholds were written, and theirs are tuned on them, so "
        "the table shows that nothing is missing, not how often anybody is right on real runs. "
        "rlwatch and rlprobe read fewer of the logged metrics than there are. martingale reads the "
        "tokens themselves; the other tools see only what TRL logs of them.\n\n"
        "What roledrift misses, it mostly does not judge: no finding is about advantages that "
        "spread, about a loss that is not finite while the gradients are, or about weights that "
        "stay the same. While the reward still rises, groups without a gradient and a low entropy "
        "are watched and not told.\n\n"
        f"{_seconds(results, tools)}\n\n"
        f"{rivals}"
        "`make bench-peers` writes this page. How often roledrift is right on recorded trainings: "
        "[detection_benchmark.md](detection_benchmark.md).\n"
    )


def rivals_section(recorded: Sequence[Run], rivals_of_runs: Mapping[str, Sequence[Rival]]) -> str:
    """The recorded runs as a section of the page."""
    parts = list(_KINDS)
    counts = {kind: sum(run.kind == kind for run in recorded) for kind in parts}
    head = "| tool | " + " | ".join(
        f"{_KINDS[kind]}, {how}" for kind in parts for how in ("aggregate", "per role")
    )
    lines = f"{head} |\n|---|" + "--:|" * (2 * len(parts)) + "\n"
    for tool, rivals in rivals_of_runs.items():
        cells = []
        for kind in parts:
            of_kind = [
                rival for run, rival in zip(recorded, rivals, strict=True) if run.kind == kind
            ]
            serious = tool.endswith("problem")
            cells.append("-" if serious else f"{sum(result.together for result in of_kind)}")
            cells.append(f"{sum(bool(result.apart) for result in of_kind)}")
        lines += f"| {tool} | " + " | ".join(cells) + " |\n"
    return (
        "## Recorded runs of several roles\n\n"
        f"{counts['failure']} runs in which an injected failure took effect, {counts['healthy']} "
        f"healthy ones and {counts['hard negative']} hard negatives, most of 34 steps: those that "
        "[detection_benchmark.md](detection_benchmark.md) reports on. *Aggregate* is one log of "
        "all roles together, *per role* one instance of a tool for each role. The table counts "
        "runs about which a tool says anything at all, at any step: what it finds in failures is "
        "worth as much as it exceeds what it raises in healthy runs.\n\n"
        f"{lines}\n"
        "roledrift per role is the monitor with its roles, as in "
        "`benchmarks/detection/results.json`, and in aggregate it reads the same log as the "
        "others. The runs are our own reference trainer's: tiny models, rewards of 0 and 1, 32 "
        "responses a step. The other monitors are made for runs of hundreds of steps; of a log "
        "that is shorter than they want they say little.\n\n"
    )


def _grouped(results: Sequence[Result]) -> dict[tuple[str, str], list[Result]]:
    groups: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        groups[result.log.source, result.log.scenario].append(result)
    return groups


def is_hit(result: Result) -> bool:
    """Whether a failure was found; of a healthy log, whether anything was raised."""
    if result.tool == "roledrift" and not result.log.healthy:
        return bool(result.findings & set(result.log.accepted))
    return bool(result.findings)


def _row(key: tuple[str, str], group: Sequence[Result], tools: Sequence[str]) -> str:
    cells = [_share([result for result in group if result.tool == tool]) for tool in tools]
    return f"| {key[0]}: `{key[1]}` | " + " | ".join(cells) + " |\n"


def _share(results: Sequence[Result]) -> str:
    return f"{sum(map(is_hit, results))} of {len(results)}" if results else "-"


def _sums(results: Sequence[Result], tools: Sequence[str]) -> str:
    lines = ""
    for name, healthy in (("**failures found**", False), ("**healthy logs with an alarm**", True)):
        cells = []
        for tool in tools:
            of_tool = [
                result
                for result in results
                if result.tool == tool and result.log.healthy == healthy
            ]
            cells.append(f"**{_share(of_tool)}**")
        lines += f"| {name} | " + " | ".join(cells) + " |\n"
    return lines


def _seconds(results: Sequence[Result], tools: Sequence[str]) -> str:
    steps = sum(len(result.log.rows) for result in results if result.tool == tools[0])
    parts = []
    for tool in (tool for tool in tools if tool != "martingale"):
        spent = sum(result.seconds for result in results if result.tool == tool)
        parts.append(f"{tool} {1000 * spent / steps * 5:.1f} s")
    return (
        "CPU seconds per 5,000 logged steps, of logs of 300 to 500 steps: "
        + ", ".join(parts)
        + " (roledrift: reading the file, writing a run directory and judging every step)."
    )


def main() -> None:
    """Run and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=PAGE)
    parser.add_argument("--simulated", action="store_true", help="leave the recorded runs out")
    given = parser.parse_args()
    recorded = [] if given.simulated else list(runs())
    rivals = rivals_section(recorded, on_recorded(recorded)) if recorded else ""
    given.out.write_text(page(run(given.seeds), given.seeds, rivals))


if __name__ == "__main__":
    main()
