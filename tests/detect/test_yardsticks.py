"""Earlier healthy runs as yardsticks of a new run's start."""

from __future__ import annotations

import math

import pytest

from roledrift.detect.suite import DetectorSuite
from roledrift.detect.yardsticks import LEAST_RUNS, combined
from roledrift.workflow import VOTING
from tests.detect.runs import AGGREGATOR, Columns, findings, judged


def _starts(*values: float) -> list[dict[str, dict[str, float]]]:
    return [{"a": {"length": value}} for value in values]


def test_the_centre_is_the_median_and_the_error_twice_the_spread_of_a_new_run() -> None:
    runs = _starts(1.0, 2.0, 4.5)
    mean = 2.5
    sd = math.sqrt(sum((x - mean) ** 2 for x in (1.0, 2.0, 4.5)) / 2)
    center, error = combined(runs)["a"]["length"]
    assert center == 2.0
    assert error == pytest.approx(2 * sd * math.sqrt(1 + 1 / 3), abs=1e-5)


def test_runs_that_are_alike_by_chance_are_not_believed() -> None:
    assert combined(_starts(1.0, 1.0, 1.0))["a"]["length"][1] == pytest.approx(
        2 * 0.1 * math.sqrt(4 / 3), abs=1e-5
    )


def test_fewer_than_three_runs_are_no_yardstick() -> None:
    assert combined(_starts(*[1.0] * (LEAST_RUNS - 1))) == {}
    assert combined([*_starts(1.0, 1.0), {"b": {"length": 1.0}}]) == {}
    assert combined(_starts(1.0, 1.0, math.nan)) == {}


def test_a_start_unlike_three_siblings_is_found_and_one_like_them_is_not() -> None:
    siblings = [
        judged(Columns(VOTING, seed, steps=20).records())[0].board.starts() for seed in range(3)
    ]
    known = combined(siblings)
    assert judged(Columns(VOTING, 9, steps=40).records(), yardsticks=known)[1] == []
    run = Columns(VOTING, 9, steps=40)
    run.role[AGGREGATOR, "length"] *= 3.0
    suite, alerts = judged(run.records(), yardsticks=known)
    assert findings(alerts) == {("length_inflation", AGGREGATOR)}
    assert alerts[0].onset == 1
    assert "earlier runs" in alerts[0].text
    assert isinstance(suite, DetectorSuite)
