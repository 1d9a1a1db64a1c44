"""What the runs of a grid have come to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reference_trainer.checkpoint import checkpoints, write_atomically
from reference_trainer.run_folder import MILESTONES, RunFolder, validated


def to_evaluate(run: Path) -> bool:
    """Whether a finished run has checkpoints that were not evaluated yet."""
    folder = RunFolder(run)
    done = (run / "evaluation" / MILESTONES).is_file()
    return folder.finished() is not None and not done and bool(checkpoints(folder.checkpoints))


def status(run: Path) -> str:
    """``finished``, ``begun`` or ``new``."""
    folder = RunFolder(run)
    if folder.finished() is not None:
        return "finished"
    return "begun" if folder.holds_a_run() else "new"


def summary(out: Path) -> list[dict[str, Any]]:
    """What every run in ``out`` came to: accuracy before, best and last, where it stopped."""
    rows = []
    for run in sorted(path for path in out.iterdir() if RunFolder(path).holds_a_run()):
        trace = RunFolder(run).trace()
        curve = validated(trace)
        end = RunFolder(run).finished()
        rows.append(
            {
                "run": run.name,
                "status": status(run),
                "steps": trace[-1]["step"] if trace else 0,
                "stopped": "" if end is None else end["stopped"],
                "before": curve.get(0),
                "best": max(curve.values(), default=None),
                "last": curve[max(curve)] if curve else None,
                "evaluated": evaluated(run),
            }
        )
    return rows


def evaluated(run: Path) -> dict[str, dict[str, float]]:
    """``base``, ``early``, ``best`` and ``last``: ``step``, ``accuracy``, ``problems`` of each."""
    folder = run / "evaluation"
    if not (folder / MILESTONES).is_file():
        return {}
    results = {}
    for name, step in json.loads((folder / MILESTONES).read_text("utf-8")).items():
        grades = json.loads((folder / f"step_{step}.json").read_text("utf-8"))
        results[name] = {key: grades[key] for key in ("step", "accuracy", "problems")}
    return results


def write_summary(out: Path) -> list[dict[str, Any]]:
    """Write :func:`summary` to ``grid.json``; its rows."""
    rows = summary(out)
    write_atomically(out / "grid.json", json.dumps(rows, indent=2) + "\n")
    return rows


def row_line(row: Mapping[str, Any]) -> str:
    """A row of :func:`summary` as a line of text."""

    def text(name: str) -> str:
        return "  - " if row[name] is None else f"{row[name]:.3f}"

    accuracies = f"{text('before')} -> best {text('best')}, last {text('last')}"
    stopped = f", stopped: {row['stopped']}" if row["stopped"] else ""
    return f"  {row['run']:32} {row['status']:8} step {row['steps']:3}  {accuracies}{stopped}"
