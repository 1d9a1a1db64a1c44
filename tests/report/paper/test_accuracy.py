from __future__ import annotations

from dataclasses import replace

import pytest
from roledrift_paper import accuracy
from roledrift_paper.grid import grid

from roledrift.report.draw.plots import Plot
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Figure, Note, Table
from roledrift.report.sweep.summary import Summary
from tests.report.paper.summaries import summary_of


@pytest.fixture
def runs(failing: JudgedRun) -> list[Summary]:
    one = summary_of(failing)
    tops = {"IP": 0.62, "SP": 0.51, "SA": 0.55}
    return [
        replace(
            one, key=policy, name=policy, policy=policy, scale="1.7B", notes={},
            workflow="single" if policy == "SA" else "voting",
            validation={0: 0.4, 10: top, 20: 0.3},
        )
        for policy, top in tops.items()
    ]  # fmt: skip


def test_table_1_by_hand(runs: list[Summary]) -> None:
    table = accuracy.table_1(grid(runs))
    (row,) = table.rows
    shown = [cell.text for cell in row]
    assert shown == ["math", "1.7B", "voting", "0.400", "0.550", "0.620", "0.510", "+7.0", "-4.0"]
    assert [cell.href for cell in row[4:7]] == ["#SA", "#IP", "#SP"]


def test_table_3_needs_marked_runs(runs: list[Summary]) -> None:
    assert isinstance(accuracy.table_3(runs, grid(runs)), Note)
    moved = replace(runs[0], notes={"transfer": "generator"}, validation={0: 0.58})
    table = accuracy.table_3([*runs, moved], grid(runs))
    assert isinstance(table, Table)
    assert [cell.text for cell in table.rows[0][3:]] == ["generator", "0.580", "0.550"]


def test_figures_hold_every_run_or_matched_cell(runs: list[Summary]) -> None:
    gains = accuracy.figure_2(grid(runs))
    assert isinstance(gains, Plot)
    assert sorted(round(dot.x) for _, dots in gains.rows for dot in dots) == [11, 15, 22]
    matched = accuracy.figure_3(grid(runs))
    assert isinstance(matched, Plot)
    assert [(dot.x, dot.y) for dot in matched.dots] == [(0.62, 0.51)]
    assert isinstance(accuracy.figure_3(grid(runs[:1])), Note)
    assert [panel.title for panel in accuracy.figure_4(grid(runs)).panels][-1].endswith(
        "validation"
    )


def test_without_validation_there_is_one_note(runs: list[Summary]) -> None:
    (note,) = accuracy.blocks([replace(one, validation={}) for one in runs])
    assert isinstance(note, Note)
    assert any(isinstance(block, Figure) for block in accuracy.blocks(runs))


def test_without_the_base_there_is_no_empty_figure_2(runs: list[Summary]) -> None:
    later = [replace(one, validation={10: 0.5}) for one in runs]
    found = accuracy.figure_2(grid(later))
    assert isinstance(found, Note)
    assert "step 0" in found.text


def test_keys_name_only_policies_that_are_there(runs: list[Summary]) -> None:
    plot = accuracy.figure_2(grid(runs[:2]))
    assert isinstance(plot, Plot)
    assert [key[0] for key in plot.keys] == ["IP", "SP"]
