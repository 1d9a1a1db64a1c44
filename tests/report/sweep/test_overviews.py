from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from roledrift.errors import ConfigError
from roledrift.report.build import build_run
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Note, Prose
from roledrift.report.sweep import overviews
from roledrift.report.sweep.overviews import added, measured
from roledrift.report.sweep.summary import Summary, summarise

Install = Callable[..., None]
COUNTING = """
from roledrift.report.model import Prose
from roledrift.report.sweep.overviews import Overview

def blocks(runs):
    if len(runs) > 2:
        raise ValueError("too many")
    return (Prose(f"{sum(one.measured['counting'] for one in runs)} records"),)

OVERVIEW = Overview("counting", lambda judged: len(judged.records), bool, blocks)
"""


def summary(judged: JudgedRun) -> Summary:
    return summarise(judged, build_run(judged, "x"), measured=measured(judged))


def test_the_papers_tables_are_for_runs_of_its_grid_or_on_request(failing: JudgedRun) -> None:
    def keys(run: Summary, *, paper: bool) -> set[str]:
        return {getattr(block, "key", "") for block in added([run], paper=paper)}

    run = summary(failing)
    assert keys(run, paper=False) == set()
    assert "table2" in keys(run, paper=True)
    of_grid = replace(run, notes={}, scale="Qwen3-1.7B")
    assert "table1" in keys(of_grid, paper=False)


def test_another_distribution_adds_what_it_measured(failing: JudgedRun, install: Install) -> None:
    install("counting", {"overviews": {"counting": "counting_part:OVERVIEW"}},
            code={"counting_part": COUNTING})  # fmt: skip
    run = summary(failing)
    assert Prose("80 records") in tuple(added([run, run], paper=False))
    (note,) = added([run, run, run], paper=False)
    assert isinstance(note, Note)
    assert "overview counting could not be made: ValueError: too many" in note.text


def test_asking_for_tables_that_are_not_installed_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing: Mapping[str, object] = {}
    monkeypatch.setattr(overviews, "usable", lambda kind, shipped: (nothing, {}))
    with pytest.raises(ConfigError, match="not installed"):
        tuple(added([], paper=True))
