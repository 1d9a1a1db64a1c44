from __future__ import annotations

from dataclasses import replace

from roledrift_paper.measured import Course
from roledrift_paper.warnings import blocks

from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Note
from roledrift.report.sweep.summary import Summary
from tests.report.paper.summaries import remeasured, summary_of


def plain(failing: JudgedRun) -> Summary:
    return replace(summary_of(failing), notes={})


def test_every_warning_has_its_case(failing: JudgedRun) -> None:
    one = plain(failing)
    isolated = remeasured(
        replace(one, policy="IP", validation={0: 0.1, 1: 0.2}),
        rows={"generator": 48.0, "aggregator": 16.0},
    )
    sources = [
        remeasured(isolated, chi2={"generator": Course(name, 1.0, 1.0, 0, 1.0, {})})
        for name in ("rollout.chi2", "update.chi2")
    ]
    (note,) = blocks([one, *sources])
    assert isinstance(note, Note)
    said = " ".join(note.items)
    assert "fewer than 3 runs" in said
    assert "biased upwards" in said
    assert "2 to 8" in said
    assert "generator 48, aggregator 16" in said
    assert "rollout.chi2, update.chi2" in said


def test_nothing_to_warn_of(failing: JudgedRun) -> None:
    one = replace(plain(failing), validation={})
    assert blocks([replace(one, seed=seed) for seed in range(3)]) == ()


def test_what_stands_against_a_mean_is_said(failing: JudgedRun) -> None:
    one = plain(failing)
    hot = replace(one, name="hot", notes={"stress": "hot learning rate"})
    fast = replace(one, settings={**one.settings, "note: lr": "0.002", "config: tier": "full"})
    slow = replace(one, settings={**one.settings, "note: lr": "0.001"})
    (note,) = blocks([hot, fast, slow])
    assert isinstance(note, Note)
    left, differ = (
        next(item for item in note.items if word in item) for word in ("on purpose", "seed alone")
    )
    assert left.endswith(": hot.")
    assert "math · voting SP: lr 0.002 / 0.001." in differ
    assert "tier" not in differ
