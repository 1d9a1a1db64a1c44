from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from roledrift.errors import ConfigError
from roledrift.report.build import build_run
from roledrift.report.index import overview
from roledrift.report.model import Figure, Table
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
