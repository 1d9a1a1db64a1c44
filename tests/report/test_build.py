from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from roledrift.detect.suite import DetectorSuite
from roledrift.errors import StoreError
from roledrift.judgement import TextPair
from roledrift.records import RunHeader, Sample
from roledrift.report.build import build_report
from roledrift.report.html import render_html
from roledrift.report.judged_run import Sharing
from roledrift.report.model import Prose, Report, Table
from roledrift.report.write import write_report
from roledrift.store.writer import RunWriter
from roledrift.workflow import SINGLE, VOTING
from tests.report.conftest import record

KEYS = ["summary", "alerts", "verdicts", "texts", "roles", "gradients", "costs", "data", "method"]


def test_a_run_has_all_sections_in_order(failing_report: Report) -> None:
    assert [section.key for section in failing_report.runs[0].sections] == KEYS
    assert failing_report.overview == ()
    assert failing_report.title == "failing"
    run = failing_report.runs[0]
    assert run.incident is not None
    assert (run.state, run.headline) == (run.incident.severity, run.incident.sentence)


def test_a_folder_of_runs_gets_an_overview(write_run: object, tmp_path: Path) -> None:
    write_run(tmp_path / "a")  # type: ignore[operator]
    write_run(tmp_path / "b", inflates=True)  # type: ignore[operator]
    write_run(tmp_path / "empty", steps=0)  # type: ignore[operator]
    report = build_report(tmp_path)
    overview = report.overview[1]
    assert isinstance(overview, Table)
    shown = [[cell.text for cell in row[:3]] for row in overview.rows]
    incident = report.runs[1].incident
    assert incident is not None
    assert shown[0] == ["b", "failing", report.runs[1].lead]
    assert incident.sentence.startswith(report.runs[1].lead)
    assert overview.rows[0][2].note == f"aggregator: {incident.finding}"
    assert sorted(shown[1:]) == [["a", "no verdict", "–"], ["empty", "no verdict", "–"]]
    tally = report.overview[0]
    assert isinstance(tally, Prose)
    assert tally.text.startswith("1 failing, 2 no verdict. All runs: workflow voting")
    assert "stress: length pays" in tally.text
    pages = {f"runs/{run.key}.html#{run.key}" for run in report.runs}
    assert {row[0].href for row in overview.rows} == pages
    assert "Validation accuracy, or else the reward" in render_html(report)


def test_a_run_given_twice_is_shown_once(failing_path: Path) -> None:
    assert len(build_report([failing_path, str(failing_path)]).runs) == 1


def test_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no run in"):
        build_report(tmp_path)
    with pytest.raises(StoreError):
        build_report(tmp_path / "nowhere")


@pytest.mark.parametrize("workflow", [SINGLE, VOTING.routed("isolated")])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_short_runs_of_any_workflow_render(write_run: object, workflow: object, steps: int) -> None:
    path = write_run("short", steps=steps, workflow=workflow, text="")  # type: ignore[operator]
    report = build_report(path)
    assert report.runs[0].incident is None
    assert render_html(report).endswith("</html>\n") or render_html(report).endswith("</html>")


def carrying(path: Path) -> Path:
    """A run whose kept texts are gone; its live alerts carry a pair of them."""
    writer = RunWriter(path, RunHeader("run", VOTING), writer="w")
    panel = DetectorSuite(VOTING)
    for step in range(40):
        one = record(step, VOTING, inflates=True, gradients=False)
        writer.write_step(one)
        for alert in panel.update(one):
            pair = TextPair(
                1, 30, "overheard secret 1", "overheard secret 2 now", prompt="secret 3"
            )
            writer.write_alert(replace(alert, pairs=(pair,)))
    writer.close()
    return path


def test_what_must_not_be_shared_is_nowhere(tmp_path: Path) -> None:
    """In texts, prompts and names, in pieces of differences, in the pairs that alerts carry."""
    gone, kept = carrying(tmp_path / "gone"), carrying(tmp_path / "kept")
    writer = RunWriter(kept, RunHeader("run", VOTING), writer="w2", resume=True)
    for step in range(0, 40, 4):
        writer.write_samples(step, [
            Sample(step, role, f"overheard secret {step} by {role}", prompt="secret 4",
                   prompt_text="overheard 5", episode=f"secret {step}", tokens=5)
            for role in VOTING.role_names
        ])  # fmt: skip
    writer.close()
    words = re.compile(r"overheard|secret")
    sharings = (Sharing(), Sharing(texts=False), Sharing(redact=words))
    for path, sharing in itertools.product((gone, kept), sharings):
        write_report(build_report(path, sharing=sharing), tmp_path / "out", ("html", "md", "json"))
        for file in (tmp_path / "out").iterdir():
            assert bool(words.search(file.read_text())) == (sharing == Sharing()), file.name


def test_texts_that_only_an_alert_carries_lead_nowhere(tmp_path: Path) -> None:
    html = render_html(build_report(carrying(tmp_path / "run")))
    assert "<ins>2 now</ins>" in html
    assert "all texts</a>" not in html
