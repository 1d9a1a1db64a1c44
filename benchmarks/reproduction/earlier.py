"""Runs that were made for the detection benchmark, as lines of results; they decide nothing."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.detection.recordings import FOLDER, Recording, load
from benchmarks.reproduction.outcomes import RECORDED, Row, gradients, packed
from benchmarks.reproduction.plan import Comparison, comparison

_TESTS = Path(__file__).with_name("earlier.toml")
_OF_ROLES = RECORDED | {"tokens": "length", "k3": "update.k3"}


def earlier_tests() -> Mapping[str, tuple[Comparison, ...]]:
    """Claim to the tests on earlier runs."""
    tables = tomllib.loads(_TESTS.read_text("utf-8"))
    return {name: tuple(map(comparison, table["tests"])) for name, table in tables.items()}


def earlier_rows(tests: Mapping[str, Sequence[Comparison]]) -> list[Row]:
    """The recorded runs that ``tests`` compare, of base models that can do the task."""
    compared = [test for some in tests.values() for test in some]
    names = sorted({place for test in compared for place in (*test.over, *test.under)})
    return [row for name in names for row in _recorded(name.partition("/")[2])]


def _recorded(scenario: str) -> list[Row]:
    rows = []
    for file in sorted(FOLDER.glob(f"{scenario}-b*.json.xz")):
        match = re.fullmatch(re.escape(scenario) + r"-b(\d+)-(\d+)\.json", file.stem)
        if match:
            base, seed = int(match[1]), int(match[2])
            rows.append(_row(load(scenario, seed, base=base), base))
    return rows


def _row(run: Recording, base: int) -> Row:
    validation = {str(step.step): packed(step.solved) for step in run.steps if step.solved}
    if run.solved_before:
        validation = {"0": packed(run.solved_before)} | validation
    return {
        **{"experiment": "earlier", "arm": run.scenario, "base": base, "seed": run.seed},
        "seconds": None,
        "accuracy": [step.totals["accuracy"] for step in run.steps],
        "roles": {role: _series(run, role) for role in run.workflow.role_names},
        "policies": {
            policy: {"grad_norm": [step.totals.get(f"grad_norm/{policy}") for step in run.steps]}
            for policy in dict.fromkeys(run.workflow.policies)
        },
        "validation": validation,
        "gradients": gradients(run.steps),
    }


def _series(run: Recording, role: str) -> dict[str, Any]:
    series: dict[str, Any] = {
        name: [step.mean(role, statistic) for step in run.steps]
        for name, statistic in _OF_ROLES.items()
    }
    return series | {"terse": list(run.terse.get(role, ()))}
