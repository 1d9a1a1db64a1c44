from __future__ import annotations

from dataclasses import replace

import pytest
from roledrift_paper.grid import base, grid, over_seeds, peak, points

from roledrift.report.cells import UNKNOWN, Cell
from roledrift.report.judged_run import JudgedRun
from roledrift.report.sweep.summary import Summary
from tests.report.paper.summaries import summary_of


@pytest.fixture
def one(failing: JudgedRun) -> Summary:
    one = summary_of(failing)
    return replace(one, notes={}, validation={0: 0.2, 10: 0.5})


def test_several_seeds_are_a_mean_with_its_spread(one: Summary) -> None:
    runs = [
        replace(one, seed=seed, validation={0: top / 2, 10: top})
        for seed, top in enumerate((0.4, 0.6))
    ]
    cell = over_seeds(runs, peak, ".3f")
    assert (cell.text, cell.note, cell.href) == ("0.500", "n=2 seeds, sd 0.141", "#run1")
    assert over_seeds(runs, base).value == pytest.approx(0.25)
    assert over_seeds([replace(one, validation={})], peak) == UNKNOWN


def test_runs_of_one_seed_are_not_called_seeds(one: Summary) -> None:
    assert "n=2 runs" in over_seeds([one, replace(one, validation={10: 0.7})], peak).note


def test_a_run_disturbed_on_purpose_is_no_seed_of_its_cell(one: Summary) -> None:
    plain = replace(one, notes={"stress": "none"})
    hot = replace(one, notes={"stress": "hot learning rate: x5 from step 13"})
    (alone,) = grid([plain, hot]).values()
    assert alone == {"SP": [plain]}
    (both,) = grid([plain, hot], everything=True).values()
    assert both == {"SP": [plain, hot]}


def test_differences_are_percentage_points() -> None:
    assert points(Cell("", 0.5), Cell("", 0.45)).text == "+5.0"
    assert points(Cell("", 0.5), UNKNOWN) == UNKNOWN


def test_transferred_adapters_are_not_in_the_grid(one: Summary) -> None:
    assert grid([replace(one, notes={"transfer": "generator"})]) == {}
    ((place, policies),) = grid([one]).items()
    assert place.label == "math · voting"
    assert list(policies) == ["SP"]
