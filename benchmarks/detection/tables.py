"""The results as Markdown and as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.detection.judging import Outcome, Score, by_scenario, score

OURS = "roledrift"


@dataclass(frozen=True, slots=True)
class Method:
    """One method's results.

    Attributes:
        name: For tables.
        settings: What was tuned, in words.
        tune: Runs of the seeds for tuning.
        report: Runs of the others.
    """

    name: str
    settings: str
    tune: Sequence[Outcome]
    report: Sequence[Outcome]


def plain(methods: Sequence[Method], *, steps: int) -> dict[str, Any]:
    """Everything, JSON-ready."""
    return {
        "steps": steps,
        "methods": {
            one.name: {
                "settings": one.settings,
                "tune": _finite(asdict(score(one.tune, steps=steps))),
                "report": _finite(asdict(score(one.report, steps=steps))),
            }
            for one in methods
        },
        "runs": [_run(one) for one in methods[0].report],
    }


def markdown(methods: Sequence[Method], told: Mapping[str, str], *, steps: int) -> str:
    """The page.

    Args:
        methods: Ours first.
        told: What our panel told per scenario, in words.
        steps: Iterations of a run.
    """
    ours = score(methods[0].report, steps=steps)
    parts = [
        "## On seeds not used for tuning",
        *_comparison(methods, steps=steps),
        "",
        "## Goals",
        *_goals(ours),
        "",
        "## Run by run",
        *_scenarios(methods[0].report, told),
    ]
    return "\n".join(parts) + "\n"


def _comparison(methods: Sequence[Method], *, steps: int) -> list[str]:
    rows = [(one, score(one.report, steps=steps)) for one in methods]
    first = rows[0][1]
    lines = [
        f"{first.failures} failing runs ({first.idle} more whose stress has had no effect are left "
        f"out), {first.healthy} healthy ones, {first.hard} hard negatives; an accuracy cliff "
        f"follows in {first.cliffs}.",
        "",
        "| method | found | right role | right name | of what it told: right role | right name "
        "| false ERRORs per healthy run | false WARNs | hard negatives passed | delay, steps "
        "| before the cliff | lead |",
        "| --- |" + " ---: |" * 11,
    ]
    for one, result in rows:
        cells = [
            _share(result.recall),
            _share(result.recall_role),
            _share(result.recall_name),
            _share(result.precision_role),
            _share(result.precision_name),
            _number(result.errors),
            _number(result.warnings),
            _share(result.hard_clean),
            _number(result.delay, digits=1),
            _share(result.led),
            _share(result.lead),
        ]
        lines.append(f"| {one.name} | " + " | ".join(cells) + " |")
    lines += ["", "Settings: " + "; ".join(f"{one.name}: {one.settings}" for one in methods) + "."]
    return lines


def _goals(ours: Score) -> list[str]:
    wanted = (
        ("failures found with the right role", ours.recall_role, 0.95, _share, True),
        ("median lead where a cliff follows, of the run", ours.lead, 0.10, _share, True),
        ("false ERRORs per healthy run", ours.errors, 0.05, _number, False),
    )
    lines = ["| goal | wanted | reached | |", "| --- | ---: | ---: | --- |"]
    for what, value, goal, told, up in wanted:
        met = value is not None and (value >= goal if up else value <= goal)
        sign = ">=" if up else "<="
        cells = (what, f"{sign} {told(goal)}", told(value), "met" if met else "**missed**")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _scenarios(outcomes: Sequence[Outcome], told: Mapping[str, str]) -> list[str]:
    lines = [
        "| scenario | | runs | right role | right name | false ERRORs | delay | told |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, runs in by_scenario(outcomes).items():
        failure = runs[0].scenario.label == "failure"
        idle = sum(not one.effect for one in runs)
        some = [one for one in runs if one.effect]
        delays = [str(one.delay) for one in some if one.delay is not None]
        cells = [
            f"`{name}`: {runs[0].scenario.about}",
            runs[0].scenario.label,
            f"{len(some)} (+{idle} without effect)" if idle else str(len(some)),
            str(sum(one.role for one in some)) if failure else "",
            str(sum(one.name for one in some)) if failure else "",
            str(sum(one.errors for one in runs)),
            ", ".join(delays),
            told.get(name, ""),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _run(one: Outcome) -> dict[str, Any]:
    values = {key: value for key, value in asdict(one).items() if key != "scenario"}
    return {"scenario": one.scenario.name, "label": one.scenario.label, **values}


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in values.items()
    }


def _share(value: float | None) -> str:
    if value is None:
        return "-"
    return "none" if math.isinf(value) else f"{100 * value:.0f} %"


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
