"""Writes the results: the page for readers, long tables, numbers, and the ledger of looks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.detection import goals, tables
from benchmarks.detection.figures import Figures
from benchmarks.detection.judging import SCALES, Outcome
from benchmarks.detection.scores import alarms, cliffs, plain, recall

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "detection_benchmark.md"
LOOKS = HERE / "looks.md"


def sections(figures: Figures) -> dict[str, list[str]]:
    """What is filled into the page, by the name of its place."""
    return {
        "summary": tables.summary(figures),
        "goals": goals.table(figures),
        "families": tables.families(figures.ours),
        "wrong": tables.wrong(figures.ours),
        "rivals": tables.rivals(figures),
        "natural": tables.natural(figures),
        "lengthened": tables.lengthened(figures),
        "looks": [line for line in LOOKS.read_text("utf-8").splitlines() if line.startswith("|")],
    }


def write(figures: Figures) -> None:
    """The page, ``results.md`` and ``results.json``."""
    PAGE.write_text(filled(PAGE.read_text("utf-8"), sections(figures)), "utf-8")
    long = ["# Run by run", "", *tables.scenarios(figures.ours), "", "# Simulated cells", ""]
    long += tables.simulated(figures.simulated)
    (HERE / "results.md").write_text("\n".join(long) + "\n", "utf-8")
    (HERE / "results.json").write_text(json.dumps(numbers(figures), indent=1) + "\n", "utf-8")


def filled(text: str, parts: Mapping[str, Sequence[str]]) -> str:
    """The page with everything between its marks replaced.

    Raises:
        ValueError: If the page lacks a place.
    """
    for name, lines in parts.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        head, marker, rest = text.partition(begin)
        _, closed, tail = rest.partition(end)
        if not marker or not closed:
            raise ValueError(f"{PAGE.name} has no place for {name!r}")
        text = f"{head}{begin}\n" + "\n".join(lines) + f"\n{end}{tail}"
    return text


def numbers(figures: Figures) -> dict[str, object]:
    """Everything, JSON-ready."""
    methods = {"roledrift": dict.fromkeys(SCALES, figures.ours)}
    for scale, rivals in figures.rivals.items():
        for rival in rivals:
            methods.setdefault(rival.name, {})[scale] = rival.outcomes
    variants = {name: dict.fromkeys(SCALES, some) for name, some in figures.variants.items()}
    return {
        "methods": {
            name: {scale: _numbers(some, scale) for scale, some in by_scale.items()}
            for name, by_scale in (methods | variants).items()
        },
        "lengthened": [
            {key: plain(value) for key, value in row.items()} for row in figures.bootstrap
        ],
        "runs": [_run(outcome) for outcome in figures.ours],
    }


def _numbers(outcomes: Sequence[Outcome], scale: tables.Scale) -> dict[str, object]:
    return {
        **{family: plain(recall(outcomes, family, scale)) for family in tables.FAMILIES},
        "cliffs": plain(cliffs(outcomes, scale)),
        "alarms": plain(alarms(outcomes, scale)),
    }


def _run(outcome: Outcome) -> dict[str, object]:
    return {
        "run": outcome.name,
        "family": outcome.truth.family,
        "counts": outcome.counts,
        "harmed": outcome.effect.harmed,
        "delay": {scale: outcome.delay(scale) for scale in outcome.reported},
        "cliff": outcome.cliff,
        "capture": outcome.capture,
        "told": list(outcome.names),
    }


def note_look(why: str, runs: int) -> None:
    """Add a line to the ledger of looks at the runs for reporting."""
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    commit = done.stdout.strip() or "unknown"
    with LOOKS.open("a", encoding="utf-8") as ledger:
        ledger.write(f"| {when} | {commit} | {runs} | {why} |\n")
