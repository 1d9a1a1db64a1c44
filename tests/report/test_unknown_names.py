"""Detectors and statistics that the report has never heard of are shown all the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from roledrift.detect.incidents import Incidents
from roledrift.judgement import Alert, Verdict
from roledrift.records import Stat
from roledrift.report.build import build_run
from roledrift.report.html import render_html
from roledrift.report.judged_run import JudgedRun, load
from roledrift.report.markdown import render_markdown
from roledrift.report.model import AlertCard, Report, Table

ALERT = Alert(
    "abcd1234", "moon_phase", "full_moon", "generator", "shared", "ERROR", "open", 30, 25,
    "The generator has seen a full moon since step 25", "The moon is full.", "moon", 0.9, 0.5,
    0.1, ("wait a fortnight",),
)  # fmt: skip


@pytest.fixture
def strange(failing: JudgedRun) -> JudgedRun:
    seen = failing.replay
    verdict = Verdict("moon_phase", "generator", "drift", "full_moon", "moon", 0.9, 0.5, 0.1, 25)
    series = {("moon_phase", "generator"): [(step, 0.03 * step, 0.5) for step in range(40)]}
    records = tuple(
        replace(one, groups={**one.groups, "generator": {
            **one.groups["generator"], "moon.light": Stat(8, 0.01 * one.step)}})
        for one in failing.records
    )  # fmt: skip
    replay = replace(
        seen,
        verdicts=(*seen.verdicts, verdict),
        alerts=(ALERT,),
        series={**seen.series, **series},
        incidents=Incidents().update(30, [ALERT]),
    )
    return replace(failing, records=records, replay=replay)


def test_it_is_in_the_matrix_and_has_a_card(strange: JudgedRun) -> None:
    run = build_run(strange, "roledrift report run")
    assert run.state == "failing"
    assert run.headline == "The generator has seen a full moon since step 25."
    blocks = {one.key: one.blocks for one in run.sections}
    matrix = blocks["verdicts"][-1]
    assert isinstance(matrix, Table)
    assert "moon_phase" in [row[0].text for row in matrix.rows]
    (card,) = (one for one in blocks["alerts"] if isinstance(one, AlertCard))
    assert [one.kind for one in card.blocks][:2] == ["prose", "figure"]
    rest = next(
        one for one in blocks["roles"] if isinstance(one, Table) and one.title.startswith("Every")
    )
    assert [cell.text for cell in rest.rows[-1]][:2] == ["moon.light", "generator"]
    report = Report("r", "0", "c", (), (run,))
    assert "moon.light" in render_html(report)
    assert "full\\_moon" in render_markdown(report)


def test_a_run_without_a_single_known_name_still_gets_a_page(
    write_run: object, tmp_path: Path
) -> None:
    judged = load(write_run(tmp_path / "odd"), "run1")  # type: ignore[operator]
    groups = {"generator": {"moon.light": Stat(8, 0.5)}}
    judged = replace(judged, records=tuple(replace(one, groups=groups) for one in judged.records))
    assert "moon.light" in render_html(Report("r", "0", "c", (), (build_run(judged, "c"),)))
