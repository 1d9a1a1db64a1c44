from __future__ import annotations

from dataclasses import replace

import pytest
from roledrift_paper import movement
from roledrift_paper.measured import Course

from roledrift.report.draw.plots import Plot
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Figure, Note
from roledrift.report.sweep.summary import Summary
from tests.report.paper.summaries import remeasured, summary_of

CHI2 = Course("rollout.chi2", 0.1, 0.8, 30, 0.05, {0: 0.1, 30: 0.8})
FLAT = Course("rollout.chi2", 0.0, 0.2, 9, 0.0, {0: 0.0, 9: 0.2})


@pytest.fixture
def runs(failing: JudgedRun) -> list[Summary]:
    one = summary_of(failing)
    isolated = remeasured(
        replace(one, key="ip", policy="IP"), chi2={"generator": CHI2, "aggregator": FLAT}
    )
    shared = remeasured(replace(one, key="sp", policy="SP"), chi2={"*": CHI2})
    return [isolated, shared]


def test_table_2_has_a_row_per_role_or_one_for_all(runs: list[Summary]) -> None:
    rows = movement.table_2(runs).rows
    assert [[cell.text for cell in row[1:4]] for row in rows] == [
        ["IP", "generator", "x8.0"],
        ["IP", "aggregator", "–"],
        ["SP", "all", "x8.0"],
    ]
    assert rows[1][3].note == "first 0, peak 0.2"
    assert rows[0][6].text == "30"
    assert rows[2][0].href == "#sp"


def test_figure_5_takes_the_largest_role(runs: list[Summary]) -> None:
    largest = movement.figure_5(runs)[0]
    assert isinstance(largest, Plot)
    assert [dot.x for _, dots in largest.rows for dot in dots] == [0.8, 0.8]


def test_figure_6_is_over_the_first_value(runs: list[Summary]) -> None:
    (figure,) = movement.figure_6(runs)
    assert isinstance(figure, Figure)
    assert figure.panels[0].lines[0].values == (1.0, 8.0)


def test_without_measurements_there_is_one_note(runs: list[Summary]) -> None:
    bare = [remeasured(one, chi2={}, ppl={}, norm={}) for one in runs]
    (note,) = movement.blocks(bare)
    assert isinstance(note, Note)


def test_figure_6_keeps_movement_beside_validation(runs: list[Summary]) -> None:
    flat = remeasured(replace(runs[1], key="flat", name="flat"), chi2={"*": FLAT})
    (figure,) = movement.figure_6([*runs, flat])
    assert isinstance(figure, Figure)
    titles = [panel.title.rsplit(": ", 1)[-1] for panel in figure.panels]
    assert titles == ["chi² over first", "validation"] * 3
    assert [bool(panel.absent) for panel in figure.panels] == [False] * 4 + [True, False]
