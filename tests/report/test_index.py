from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from roledrift.errors import ConfigError
from roledrift.report.build import build_run
from roledrift.report.index import overview
from roledrift.report.model import Figure, Prose, Table
from roledrift.report.summary import Summary, summarise
from roledrift.report.view import View


def runs(view: View) -> list[Summary]:
    one = summarise(view, build_run(view, "x"))
    return [replace(one, seed=seed, key=f"run{seed}", name=f"r{seed}") for seed in range(3)]


def test_seeds_share_a_line_with_a_band(failing: View) -> None:
    blocks = overview(runs(failing))
    figure = next(one for one in blocks if isinstance(one, Figure))
    (line,) = figure.panels[0].lines
    assert line.label == "all seeds, n=3"
    assert line.low == line.high == line.values


def test_runs_that_differ_in_nothing_but_their_name_stand_alone(failing: View) -> None:
    same = [replace(one, seed=0) for one in runs(failing)]
    figure = next(one for one in overview(same) if isinstance(one, Figure))
    assert [line.label for line in figure.panels[0].lines] == ["r0", "r1", "r2"]


def test_groups_whose_names_begin_alike_are_all_drawn(failing: View) -> None:
    long = "a note that is longer than what a label has room for, and ends in "
    some = [
        replace(one, notes={"idea": long + end}, name=f"{end}{one.name}", key=f"{end}{one.key}")
        for end in "xy"
        for one in runs(failing)
    ]
    figure = next(one for one in overview(some) if isinstance(one, Figure))
    assert len({line.label for line in figure.panels[0].lines}) == 2


def test_only_settings_that_differ_are_listed(failing: View) -> None:
    given = runs(failing)
    given[1] = replace(given[1], settings={**given[1].settings, "config: tier": "full"})
    table = next(one for one in overview(given) if isinstance(one, Table) and one.collapsed)
    assert table.columns == ("run", "config: tier")
    assert [row[1].text for row in table.rows] == ["–", "full", "–"]


def test_the_table_of_runs_can_be_sorted_and_links(failing: View, tmp_path: Path) -> None:
    table = overview(runs(failing))[1]
    assert isinstance(table, Table)
    assert table.sortable
    assert [row[0].href for row in table.rows] == ["#run0", "#run1", "#run2"]


def test_runs_are_grouped_as_the_user_says(failing: View) -> None:
    some = [replace(one, policy="IP" if at else "SP") for at, one in enumerate(runs(failing))]
    figure = next(one for one in overview(some, ["policy", "seed"]) if isinstance(one, Figure))
    labels = [line.label for line in figure.panels[0].lines]
    assert [one.split(",")[0] for one in labels] == ["SP 3", "IP 3"]
    assert "policy and seed" in figure.caption
    figure = next(one for one in overview(some, ["stress"]) if isinstance(one, Figure))
    assert [line.label.split(",")[0] for line in figure.panels[0].lines] == ["length pays"]
    with pytest.raises(ConfigError, match=r"cannot be grouped by 'polcy': these have .*policy"):
        overview(some, ["polcy"])


def columns(view: View, some: list[Summary]) -> dict[str, list[str]]:
    table = overview(some)[1]
    assert isinstance(table, Table)
    return {
        name: [row[at].text or row[at].note for row in table.rows]
        for at, name in enumerate(table.columns)
    }


def test_the_worst_run_comes_first_and_is_named_with_its_role(failing: View) -> None:
    given = runs(failing)
    given[0] = replace(given[0], state="clean", incident=None, closed=False)
    given[1] = replace(given[1], state="suspicious")
    found = columns(failing, given)
    assert found["run"] == ["r2", "r1", "r0"]
    assert found["what happened"] == [failing.conclusion.sentence] * 2 + ["–"]
    tally, table = overview(given)[:2]
    assert isinstance(tally, Prose)
    assert tally.text.startswith("1 failing, 1 suspicious, 1 clean. All runs: voting")
    assert isinstance(table, Table)
    assert [row[1].note for row in table.rows] == ["", "", "not closed"]


def test_columns_and_notes_that_are_the_same_in_all_runs_are_left_out(failing: View) -> None:
    given = runs(failing)
    long = "reward for every token, " * 20
    notes = ({"lr": "0.1", "run": "a", "why": long}, {"lr": "0.2", "run": "b", "why": long})
    given = [replace(one, notes=some) for one, some in zip(given, notes, strict=False)]
    found = columns(failing, given)
    assert "workflow" not in found
    table = overview(given)[1]
    assert isinstance(table, Table)
    assert [row[0].note for row in table.rows] == ["lr: 0.1", "lr: 0.2"]
    assert "notes that differ" in table.caption
    given[1] = replace(given[1], notes={"why": long + "!"})
    table = overview(given)[1]
    assert isinstance(table, Table)
    assert max(len(row[0].note) for row in table.rows) == 120


def test_labels_say_what_differs_and_nothing_else(failing: View) -> None:
    one = replace(runs(failing)[0], notes={"base": "verbose share of the warm-up 0.35"})
    some = [
        replace(one, key=f"{task}{policy}{seed}", name=f"{task}-{policy}-{seed}", seed=seed,
                task=task, workflow=f"w of {task}", policy=policy)
        for task in ("code", "math") for policy in ("IP", "SP") for seed in (0, 1)
    ]  # fmt: skip
    alone = replace(one, key="x", name="the odd one", task="code", notes={"base": "other"})
    figure = next(block for block in overview([*some, alone]) if isinstance(block, Figure))
    labels = [line.label.split(",")[0] for line in figure.panels[0].lines]
    assert labels[-1] == "the odd one" or "the odd one" in labels
    assert all("verbose share" not in label or "…" in label for label in labels)
    figure = next(block for block in overview(some) if isinstance(block, Figure))
    labels = [line.label for line in figure.panels[0].lines]
    assert labels == ["code IP, n=2", "code SP, n=2", "math IP, n=2", "math SP, n=2"]


def test_of_many_groups_those_are_drawn_that_fell_farthest(failing: View) -> None:
    one = runs(failing)[0]
    some = [
        replace(one, key=f"k{at}", name=f"r{at:02}", reward={0: 0.5, 1: 0.9, 2: 0.9 - 0.02 * at})
        for at in range(20)
    ]
    reward = next(block for block in overview(some) if getattr(block, "key", "").endswith("reward"))
    assert isinstance(reward, Figure)
    assert [line.label for line in reward.panels[0].lines] == [f"r{at:02}" for at in range(12, 20)]
    assert "the 8 of 20 that end farthest below their own best" in reward.caption
