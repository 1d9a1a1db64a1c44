"""Input that no trainer should send: no detector fails on it, nothing missing is called fine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from roledrift.detect.catalogue import shipped
from roledrift.detect.conclusion import conclude
from roledrift.detect.suite import DetectorSuite, replay
from roledrift.records import GramRecord, Stat, StepRecord
from roledrift.workflow import EVAL_OPT, SINGLE, VOTING, Workflow
from tests.detect.runs import ISOLATED, Columns, judged

STEPS = 40
NAN, INF = math.nan, math.inf
TOTALS = ("accuracy", "reward", "val_accuracy", "val_n", "lr", "lr/shared", "lr/generator")
NAMES = sorted(
    {name for card in shipped() for name in card.reads if name not in TOTALS}
    | {"old.k3", "rollout.chi2", "rollout.refused", "old.refused", "advantage", "clip_fraction"}
)

Series = Callable[[np.random.Generator], list[float | None]]


def _constant(rng: np.random.Generator) -> list[float | None]:
    return [float(rng.choice([0.0, 1.0, -1.0, 1e-300, 1e300]))] * STEPS


def _negative(rng: np.random.Generator) -> list[float | None]:
    return [float(x) for x in -np.abs(rng.normal(size=STEPS))]


def _ordinary(rng: np.random.Generator) -> list[float | None]:
    return [float(x) for x in np.exp(rng.normal(size=STEPS))]


def _interrupted(rng: np.random.Generator) -> list[float | None]:
    return [x if rng.random() < 0.5 else None for x in _ordinary(rng)]


def _vanishing(rng: np.random.Generator) -> list[float | None]:
    return [*_ordinary(rng)[: STEPS // 2], *[None] * (STEPS - STEPS // 2)]


def _late(rng: np.random.Generator) -> list[float | None]:
    return [*[None] * (STEPS // 2), *_ordinary(rng)[STEPS // 2 :]]


def _nonfinite(rng: np.random.Generator) -> list[float | None]:
    return [float(rng.choice([NAN, INF, -INF, 1.0])) for _ in range(STEPS)]


def _extreme(rng: np.random.Generator) -> list[float | None]:
    return [float(rng.choice([1e308, -1e308, 5e-324, 0.0])) for _ in range(STEPS)]


def _missing(_: np.random.Generator) -> list[float | None]:
    return [None] * STEPS


def _jump(_: np.random.Generator) -> list[float | None]:
    return [*[1e-300] * (STEPS // 2), *[1e300] * (STEPS - STEPS // 2)]


ALL: tuple[Series, ...] = (
    _constant, _negative, _ordinary, _interrupted, _vanishing, _late, _nonfinite, _extreme,
    _missing, _jump,
)  # fmt: skip


def _records(
    workflow: Workflow, rng: np.random.Generator, kinds: tuple[Series, ...]
) -> list[StepRecord]:
    def column() -> list[float | None]:
        return kinds[rng.integers(len(kinds))](rng)

    groups = {name: {stat: column() for stat in NAMES} for name in (*workflow.role_names, "*")}
    totals = {name: column() for name in TOTALS}
    records = []
    for t in range(STEPS):
        stats = {}
        for name, columns in groups.items():
            sd = [None, 0.0, 0.3, NAN, INF, -1.0][rng.integers(6)]
            n = float(rng.choice([0.0, 1.0, 64.0]))
            stats[name] = {
                stat: Stat(n, value, sd, high=value)
                for stat, values in columns.items()
                if (value := values[t]) is not None
            }
        if rng.random() < 0.1:
            stats.pop(workflow.role_names[0])
        records.append(
            StepRecord(
                step=t,
                groups=stats,
                totals={name: v for name, values in totals.items() if (v := values[t]) is not None},
                labels={"rollout": str(rng.choice(["", "T=1.0, 0 steps between", "T=x", "T=."]))},
                solved=str(rng.choice(["", "0101", "1", "xx"])),
                base=stats if t == 0 and rng.random() < 0.5 else {},
                gradients=(_gram(workflow, rng),),
            )
        )
    return records


def _gram(workflow: Workflow, rng: np.random.Generator) -> GramRecord:
    value = float(rng.choice([0.0, 1.0, NAN, INF]))
    square = tuple(tuple(value for _ in range(6)) for _ in range(6))
    return GramRecord(workflow.policies[0], (), (), halves={workflow.role_names[0]: square})


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("workflow", [VOTING, ISOLATED, SINGLE, EVAL_OPT])
def test_one_kind_of_odd_input(kind: Series, workflow: Workflow) -> None:
    judged(_records(workflow, np.random.default_rng(1), (kind,)), workflow)


@pytest.mark.parametrize("seed", range(25))
def test_all_kinds_of_odd_input_together(seed: int) -> None:
    workflow = (VOTING, ISOLATED, SINGLE, EVAL_OPT)[seed % 4]
    suite, alerts = judged(_records(workflow, np.random.default_rng(seed), ALL), workflow)
    for alert in alerts:
        assert alert.title
        assert len(alert.title) < 100
    assert conclude(suite.verdicts, suite.incidents, STEPS).sentence


@pytest.mark.parametrize("kind", [_missing, _nonfinite])
@pytest.mark.parametrize("workflow", [VOTING, SINGLE])
def test_what_was_not_measured_is_never_clean(kind: Series, workflow: Workflow) -> None:
    for seed in range(5):
        suite, _ = judged(_records(workflow, np.random.default_rng(seed), (kind,)), workflow)
        assert conclude(suite.verdicts, suite.incidents, STEPS).outcome != "clean"


def test_records_without_anything_are_no_verdict() -> None:
    suite, alerts = judged([StepRecord(step=t) for t in range(30)])
    assert alerts == []
    assert {one.state for one in suite.verdicts} == {"no verdict"}
    found = conclude(suite.verdicts, suite.incidents, 30)
    assert found.outcome == "no verdict"
    assert found.needs


def test_zero_rows_are_no_evidence() -> None:
    records = [
        replace(
            one,
            groups={
                role: {name: Stat(0.0, NAN) for name in stats} for role, stats in one.groups.items()
            },
            totals={},
        )
        for one in Columns().records()
    ]
    suite, alerts = judged(records)
    assert alerts == []
    assert conclude(suite.verdicts, suite.incidents, len(records)).outcome == "no verdict"


@pytest.mark.parametrize("gone", VOTING.role_names)
def test_a_role_that_vanishes_raises_nothing_and_the_others_are_judged_on(gone: str) -> None:
    run = Columns(seed=3)
    other = next(name for name in VOTING.role_names if name != gone)
    run.role[other, "length"] *= run.course({44: 1.0, 45: 4.0})
    records = run.records()[:25] + [
        replace(one, groups={name: stats for name, stats in one.groups.items() if name != gone})
        for one in run.records()[25:]
    ]
    _, alerts = judged(records)
    assert gone not in {one.role for one in alerts}
    if other == "aggregator":  # the terse role is the one whose length is watched
        assert ("length_inflation", other) in {(one.finding, one.role) for one in alerts}


def test_a_statistic_that_appears_late_is_judged_from_its_own_start() -> None:
    run = Columns(seed=4, steps=80)
    for role in VOTING.role_names:
        run.role[role, "length"][:30] = math.nan
    suite, alerts = judged(run.records())
    assert alerts == []
    (verdict,) = [one for one in suite.verdicts if one.detector == "length_inflation"]
    assert verdict.state == "ok"


def test_a_resumed_run_may_have_another_workflow() -> None:
    before = Columns(seed=5, steps=20).records()
    for workflow in (SINGLE, EVAL_OPT, ISOLATED):
        found = replay(before, workflow)
        assert found.faults == {}
        assert {one.role for one in found.verdicts} <= {*workflow.role_names, "*"}
        suite = DetectorSuite(workflow)
        for record in before:
            suite.update(record)
        for record in Columns(workflow, seed=6, steps=30).records():
            suite.update(record)  # goes back to step 1
        assert suite.faults == {}
