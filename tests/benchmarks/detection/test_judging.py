from dataclasses import replace
from typing import Any

import pytest

from benchmarks.detection.judging import Finding, cliff_of, judge, score
from benchmarks.detection.recordings import Recording
from benchmarks.detection.suite import Scenario
from roledrift import VOTING, StepRecord
from roledrift.records import Stat


def scenario(label: Any = "failure", **changes: Any) -> Scenario:
    values: dict[str, Any] = {
        "name": "one",
        "trunk": "",
        "label": label,
        "about": "",
        "roles": ("generator",),
        "names": ("role_drift",),
        "also": ("accuracy_cliff",),
        "effect": None,
        "settings": {},
        "tune": (),
        "report": (),
    }
    return Scenario(**values | changes)


def recording(validation: dict[int, float], problems: int = 100) -> Recording:
    return Recording("one", 0, VOTING, {}, (), validation, problems, ())


FALLS = recording({0: 0.3, 10: 0.6, 20: 0.3, 30: 0.1})


def test_a_cliff_is_a_fall_that_chance_and_a_tenth_do_not_explain() -> None:
    assert cliff_of(FALLS, 5) == 20
    assert cliff_of(FALLS, 25) == 30  # what fell before the onset is not its doing
    assert cliff_of(recording({0: 0.3, 10: 0.6, 20: 0.35}), 5) is None  # nothing confirms it
    assert cliff_of(recording({0: 0.3, 10: 0.6, 20: 0.5, 30: 0.48}), 5) is None
    assert cliff_of(recording({0: 0.3, 10: 0.6, 20: 0.3, 30: 0.6}), 5) is None  # it came back
    assert cliff_of(recording({0: 0.3, 10: 0.6, 20: 0.4}, problems=9), 5) is None
    tiny = {0: 0.05, 10: 0.0, 20: 0.0}
    assert cliff_of(recording(tiny, problems=10**6), 5) is None


def test_a_failure_is_found_by_role_and_by_name() -> None:
    told = [
        Finding(3, "generator", "role_drift", "WARN"),  # before the onset: false
        Finding(12, "aggregator", "role_drift"),
        Finding(14, "generator", "length_inflation"),
        Finding(16, "generator", "role_drift", "WARN"),
        Finding(22, "*", "accuracy_cliff"),
    ]
    found = judge(scenario(), FALLS, told, onset=10)
    assert (found.errors, found.warnings) == (0, 1)
    assert (found.found, found.role, found.name) == (True, True, True)
    assert (found.told, found.told_role, found.told_name) == (4, 3, 2)
    assert (found.delay, found.cliff, found.lead) == (4, 20, 6)


def test_a_consequence_alone_is_neither_the_role_nor_the_name() -> None:
    found = judge(scenario(), FALLS, [Finding(22, "*", "accuracy_cliff")], onset=10)
    assert (found.found, found.role, found.name) == (True, False, False)
    assert (found.told, found.told_role, found.told_name, found.lead) == (1, 1, 1, None)


def test_whatever_is_told_about_a_healthy_run_is_false() -> None:
    told = [Finding(3, "generator", "role_drift", "WARN"), Finding(20, "*", "accuracy_cliff")]
    found = judge(scenario("hard negative"), FALLS, told, onset=10)
    assert (found.errors, found.warnings, found.found) == (1, 1, False)


def test_the_score_counts_runs() -> None:
    good = [Finding(14, "generator", "role_drift")]
    outcomes = [
        judge(scenario(), FALLS, good, onset=10),
        judge(scenario(), FALLS, [], onset=10),
        judge(scenario(), FALLS, [Finding(24, "generator", "x")], onset=10),
        judge(scenario("healthy"), FALLS, good, onset=10),
        judge(scenario("hard negative"), FALLS, [], onset=10),
    ]
    result = score(outcomes, steps=100)
    assert (result.failures, result.healthy, result.hard, result.cliffs) == (3, 1, 1, 3)
    assert result.recall_role == pytest.approx(2 / 3)
    assert result.recall_name == pytest.approx(1 / 3)
    assert result.precision_name == pytest.approx(1 / 2)
    assert (result.errors, result.hard_clean) == (1.0, 1.0)
    assert result.delay == 9
    assert result.led == pytest.approx(1 / 3)
    assert result.lead == pytest.approx(-0.04)  # of +6, -4 and a run in which nothing was told


def test_a_stress_without_effect_is_no_failure() -> None:
    def lengths(last: float) -> Recording:
        values = [10.0] * 12 + [last] * 8
        steps = tuple(
            StepRecord(step, groups={"generator": {"length": Stat(1, value)}})
            for step, value in enumerate(values, start=1)
        )
        return replace(FALLS, steps=steps)

    grows = scenario(effect=("length", 1.5))
    good = [Finding(14, "generator", "role_drift")]
    outcomes = [judge(grows, lengths(last), good, onset=13) for last in (10.0, 16.0)]
    assert [one.effect for one in outcomes] == [False, True]
    result = score(outcomes, steps=20)
    assert (result.failures, result.idle) == (1, 1)


def test_nothing_is_a_share_of_nothing() -> None:
    result = score([], steps=10)
    assert result.recall is None
    assert result.lead is None
    assert result.errors is None
