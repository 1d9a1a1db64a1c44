"""What is kept of a run: one line of JSON, small enough for the repository."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.reproduction.plan import Job
from reference_trainer.run_folder import RunFolder
from roledrift import Run, StepRecord, open_run
from roledrift.detect.by_problem import by_problem
from roledrift.gram import coherence, slots_of

FOLDER = Path(__file__).with_name("results")

Row = dict[str, Any]
"""One run. ``accuracy``, ``roles`` and ``policies`` hold one number per iteration, ``validation``
the problems solved (hexadecimal, the first problem is the highest bit), ``told`` what the monitor
said of the run."""

_DIGITS = 4
_OF_ROLES = ("tokens", "terse", "tagged", "accuracy", "k3")
RECORDED = {"chi2": "rollout.chi2", "ppl": "rollout.training_ppl"}


def outcome(run: Path, job: Job, *, config: str, code: str, cpu: float) -> Row:
    """The line of a finished run.

    Args:
        run: Its run directory.
        job: Its place in the plan.
        config: Hash of its settings.
        code: Commit of the code that made it.
        cpu: CPU seconds of all of it.
    """
    trace = RunFolder(run).trace()
    rows = [row for row in trace if row["step"] > 0]
    stored = open_run(run)
    return {
        **{"v": 1, "experiment": job.experiment, "arm": job.arm, "base": job.base},
        **{"seed": job.seed, "config": config, "code": code, "cpu": round(cpu, 1)},
        "seconds": _short(median(row["seconds"]["all"] for row in rows)) if rows else None,
        "accuracy": [_short(row["accuracy"]) for row in rows],
        "roles": _roles(rows, stored.steps()),
        "policies": _policies(rows),
        "validation": {
            str(row["step"]): packed(row["validation"]["solved"])
            for row in trace
            if row.get("validation")
        },
        "gradients": gradients(stored.steps()),
        "told": _report_of(stored),
    }


def solved(text: str) -> list[bool]:
    """The problems of a validation: whether each was solved."""
    count, _, digits = text.partition(":")
    bits = f"{int(digits, 16):0{int(count)}b}"
    return [bit == "1" for bit in bits]


def append(row: Row, folder: Path = FOLDER) -> None:
    """Add a line to the results of its experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{row['experiment']}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, separators=(",", ":")) + "\n")


def load(folder: Path = FOLDER) -> list[Row]:
    """All lines of all experiments; of a run that was made twice, the last one."""
    rows: dict[tuple[str, str, int, int], Row] = {}
    for row in _lines(sorted(folder.glob("*.jsonl"))):
        if "arm" in row:
            rows[row["experiment"], row["arm"], row["base"], row["seed"]] = row
    return list(rows.values())


def load_bases(folder: Path = FOLDER) -> list[Row]:
    """What the base models could do; of one that two shards measured, the last line."""
    return list({row["key"]: row for row in _lines([folder / "bases.jsonl"])}.values())


def _lines(files: Iterable[Path]) -> Iterator[Row]:
    for file in files:
        if file.is_file():
            yield from map(json.loads, file.read_text("utf-8").splitlines())


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def packed(bits: str) -> str:
    """A validation, one ``0`` or ``1`` per problem, in a quarter of the length."""
    return f"{len(bits)}:{int(bits, 2):x}"


def _roles(rows: Sequence[Mapping[str, Any]], steps: Sequence[StepRecord]) -> Row:
    names = list(dict.fromkeys(role for row in rows for role in row["roles"]))
    by_role: Row = {}
    for role in names:
        series = {
            name: [_short(row["roles"].get(role, {}).get(name)) for row in rows]
            for name in _OF_ROLES
        }
        for name, key in RECORDED.items():
            groups = [step.groups.get(role, {}).get(key) for step in steps]
            series[name] = [None if group is None else _short(group.mean) for group in groups]
        by_role[role] = {name: values for name, values in series.items() if set(values) != {None}}
    return by_role


def _policies(rows: Sequence[Mapping[str, Any]]) -> Row:
    names = list(dict.fromkeys(policy for row in rows for policy in row["policies"]))
    return {
        name: {
            "updates": rows[0]["policies"].get(name, {}).get("updates"),
            **{
                key: [_short(row["policies"].get(name, {}).get(key)) for row in rows]
                for key in ("grad_norm", "rollout_chi2")
            },
        }
        for name in names
    }


def gradients(steps: Sequence[StepRecord]) -> list[list[Any]]:
    """Step, role, coherence of its slots, cosines on the same and on different problems."""
    rows = []
    for step in steps:
        for record in step.gradients:
            for role, slots in slots_of(record).items():
                if len(slots) < 2:
                    continue
                split = by_problem(record, role)
                cosines = [None, None] if split is None else [split.same, split.apart]
                values = [coherence(record, slots), *cosines]
                rows.append([step.step, role, *map(_short, values)])
    return rows


def _report_of(run: Run) -> Row:
    verdict = run.verdict
    return {
        "outcome": verdict.outcome,
        "sentence": verdict.sentence,
        "reached": verdict.reached,
        "applicable": verdict.applicable,
        "incidents": [
            {
                **{"role": incident.role, "finding": incident.finding},
                **{"severity": incident.severity, "onset": incident.onset},
                **{"reported": incident.reported, "state": incident.state},
                "consequences": [[also.role, also.finding] for also in incident.consequences],
            }
            for incident in run.incidents
        ],
        "alerts": sorted(
            {(alert.role, alert.finding, alert.onset, alert.step, alert.graded)
             for alert in run.alerts if alert.state == "open"}
        ),
    }  # fmt: skip
