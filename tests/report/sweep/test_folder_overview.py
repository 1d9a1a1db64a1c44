from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from roledrift.errors import ConfigError
from roledrift.report.build import build_run
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Figure, Prose, Table
from roledrift.report.sections import first_screen
from roledrift.report.sweep.folder_overview import overview
from roledrift.report.sweep.summary import Summary, summarise


def runs(run: JudgedRun) -> list[Summary]:
    one = summarise(run, build_run(run, "x"))
    return [replace(one, seed=seed, key=f"run{seed}", name=f"r{seed}") for seed in range(3)]


def multiples(some: Sequence[Summary], by: Sequence[str] = ()) -> Figure:
    (figure,) = (one for one in overview(some, by) if isinstance(one, Figure))
    return figure


def titles(some: Sequence[Summary], by: Sequence[str] = ()) -> list[str]:
    return [panel.title for panel in multiples(some, by).panels]


def test_seeds_share_a_panel_with_a_band(failing: JudgedRun) -> None:
    (panel,) = multiples(runs(failing)).panels
    (line,) = panel.lines
    assert (panel.title, panel.note) == ("all seeds", "validation accuracy, n=3")
    assert line.low == line.high == line.values
    assert panel.marks == ()


def test_runs_that_differ_in_nothing_but_their_name_stand_alone(failing: JudgedRun) -> None:
    same = [replace(one, seed=0) for one in runs(failing)]
    assert titles(same) == ["r0", "r1", "r2"]
    panel = multiples(same).panels[0]
    assert (panel.href, panel.state) == ("#run0", "failing")
    assert [mark.step for mark in panel.marks] == [failing.findings[0].alert.onset]


def test_groups_whose_names_begin_alike_are_all_drawn(failing: JudgedRun) -> None:
    long = "a note that is longer than what a label has room for, and ends in "
    some = [
        replace(one, notes={"idea": long + end}, name=f"{end}{one.name}", key=f"{end}{one.key}")
        for end in "xy"
        for one in runs(failing)
    ]
    assert len(set(titles(some))) == 2


def test_only_settings_that_differ_are_listed(failing: JudgedRun) -> None:
    given = runs(failing)
    given[1] = replace(given[1], settings={**given[1].settings, "config: tier": "full"})
    table = next(one for one in overview(given) if isinstance(one, Table) and one.collapsed)
    assert table.columns == ("run", "config: tier")
    assert [row[1].text for row in table.rows] == ["–", "full", "–"]


def test_the_table_of_runs_can_be_sorted_and_links(failing: JudgedRun, tmp_path: Path) -> None:
    table = overview(runs(failing))[1]
    assert isinstance(table, Table)
    assert table.sortable
    assert [row[0].href for row in table.rows] == ["#run0", "#run1", "#run2"]


def test_runs_are_grouped_as_the_user_says(failing: JudgedRun) -> None:
    some = [replace(one, policy="IP" if at else "SP") for at, one in enumerate(runs(failing))]
    assert titles(some, ["policy", "seed"]) == ["SP 3", "IP 3"]
    assert "policy and seed" in multiples(some, ["policy", "seed"]).caption
    assert titles(some, ["stress"]) == ["length pays"]
    with pytest.raises(ConfigError, match=r"cannot be grouped by 'polcy': these have .*policy"):
        overview(some, ["polcy"])


def columns(run: JudgedRun, some: list[Summary]) -> dict[str, list[str]]:
    table = overview(some)[1]
    assert isinstance(table, Table)
    return {
        name: [row[at].text or row[at].note for row in table.rows]
        for at, name in enumerate(table.columns)
    }


def test_the_worst_run_comes_first_and_is_named_with_its_role(failing: JudgedRun) -> None:
    given = runs(failing)
    given[0] = replace(given[0], state="clean", incident=None, closed=False)
    given[1] = replace(given[1], state="suspicious")
    found = columns(failing, given)
    assert found["run"] == ["r2", "r1", "r0"]
    assert found["what happened"] == [first_screen.lead(failing)] * 2 + ["–"]
    tally, table = overview(given)[:2]
    assert isinstance(tally, Prose)
    assert tally.text.startswith("1 failing, 1 suspicious, 1 clean. All runs: workflow voting")
    assert isinstance(table, Table)
    assert [row[1].note for row in table.rows] == ["", "", "not closed"]


def test_columns_that_are_the_same_in_all_runs_are_left_out(failing: JudgedRun) -> None:
    assert "workflow" not in columns(failing, runs(failing))
    given = runs(failing)
    given[0] = replace(given[0], workflow="orch")
    assert sorted(columns(failing, given)["workflow"]) == ["orch", "voting", "voting"]


def test_labels_say_what_differs_and_nothing_else(failing: JudgedRun) -> None:
    one = replace(runs(failing)[0], notes={"base": "verbose share of the warm-up 0.35"})
    some = [
        replace(one, key=f"{task}{policy}{seed}", name=f"{task}-{policy}-{seed}", seed=seed,
                task=task, workflow=f"w of {task}", policy=policy)
        for task in ("code", "math") for policy in ("IP", "SP") for seed in (0, 1)
    ]  # fmt: skip
    alone = replace(one, key="x", name="the odd one", task="code", notes={"base": "other"})
    assert "the odd one" in titles([*some, alone])
    assert not [one for one in titles([*some, alone]) if "verbose share" in one and "…" not in one]
    assert sorted(titles(some)) == ["code IP", "code SP", "math IP", "math SP"]


def test_the_worst_are_drawn_and_the_rest_is_counted(failing: JudgedRun) -> None:
    one = runs(failing)[0]
    some = [
        replace(one, key=f"k{at}", name=f"r{at:02}", state="clean" if at else "failing")
        for at in range(30)
    ]
    shown = multiples([*some[1:], some[0]])
    assert (len(shown.panels), shown.panels[0].title) == (24, "r00")
    assert "Drawn are 24 of 30" in shown.caption


def test_runs_without_validation_show_their_reward(failing: JudgedRun) -> None:
    one = replace(runs(failing)[0], validation={})
    (panel,) = multiples([one]).panels
    assert panel.note == "reward"
    bare = replace(one, reward={})
    assert not [block for block in overview([bare]) if isinstance(block, Figure)]
