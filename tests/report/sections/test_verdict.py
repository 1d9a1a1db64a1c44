from __future__ import annotations

from roledrift.report.model import Table
from roledrift.report.sections import verdict
from roledrift.report.view import View


def test_the_headline_says_who_what_since_when_and_how_strong(failing: View) -> None:
    finding = failing.findings[0]
    text = verdict.headline(failing)
    assert text.startswith("aggregator drifts: its answers have grown since step ")
    assert f"alert at step {finding.raised}" in text
    assert "of its baseline" in text
    assert "at its peak" in text
    assert "reward stayed level" in verdict.meanwhile(failing)
    assert "validation accuracy fell" in verdict.meanwhile(failing)


def test_a_run_without_findings_says_how_much_was_judged(healthy: View, empty: View) -> None:
    said = verdict.headline(healthy)
    assert said.startswith("No drift found in steps 0–39, but only ")
    possible, asked = (int(word) for word in said.split() if word.isdigit())
    about = [one for one in healthy.verdicts if not one.reason.startswith("does not apply")]
    assert asked == len(about)
    assert possible == sum(one.state != "no verdict" for one in about)
    assert verdict.overall(healthy) == "ok"
    assert verdict.meanwhile(healthy) == ""
    assert "no verdict" in verdict.headline(empty)
    assert verdict.overall(empty) == "no verdict"


def test_the_matrix_is_grey_with_a_reason_where_nobody_judged(failing: View) -> None:
    matrix = verdict.build(failing).blocks[0]
    assert isinstance(matrix, Table)
    assert matrix.columns == ("detector", "generator", "aggregator", "all roles")
    cells = [cell for row in matrix.rows for cell in row[1:]]
    grey = [cell for cell in cells if cell.state == "no verdict"]
    assert grey
    assert all(cell.note for cell in grey)
    dashes = [cell for cell in cells if cell.text == "–"]
    assert all(not cell.state and cell.note in ("", "does not apply") for cell in dashes)
    red = [cell for cell in cells if cell.state == "drift"]
    assert all(cell.href.startswith("#run1-alert-") for cell in red)
