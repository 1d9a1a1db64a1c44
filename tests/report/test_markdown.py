from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from roledrift.report.build import build_report
from roledrift.report.markdown import LINES, render_markdown
from roledrift.report.model import Report
from roledrift.report.sanitise import escaped
from tests.report.conftest import HOSTILE


def test_markdown_has_the_verdict_the_matrix_and_the_pairs(failing_report: Report) -> None:
    text = render_markdown(failing_report)
    run = failing_report.runs[0]
    assert f"**{run.state}**: {escaped(run.headline)}" in text
    assert "| detector | generator | aggregator |" in text
    assert "| length\\_inflation | " in text
    assert "before onset, step" in text
    assert "after onset, step" in text
    assert len(text.splitlines()) <= LINES


def test_hostile_text_is_fenced(hostile_report: Report, failing_report: Report) -> None:
    text = render_markdown(hostile_report)
    assert "\x1b" not in text
    assert HOSTILE[:9] in text, "the pair is shown"
    prose = re.sub(r"^(`{3,})text$.*?^\1$", "", text, flags=re.S | re.M)
    assert not [line for line in prose.splitlines() if line.startswith("<")]


def test_many_runs_fit_and_what_is_left_out_is_named(
    failing_path: Path, write_run: object, tmp_path: Path
) -> None:
    for index in range(14):
        write_run(tmp_path / f"r{index:02d}", inflates=True)  # type: ignore[operator]
    text = render_markdown(build_report(tmp_path))
    assert len(text.splitlines()) <= LINES
    assert "| run | outcome | what happened |" in text
    assert "Left out for length" in text


def test_notices_and_notes_are_there_too(failing_report: Report) -> None:
    run = replace(failing_report.runs[0], notices=("It was not closed.",), notes=("lr: 0.1",))
    text = render_markdown(replace(failing_report, runs=(run,)))
    assert "> It was not closed." in text
    assert "lr: 0.1" in text
