from __future__ import annotations

from dataclasses import replace

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
    # Less than half could be judged, so the run is not green.
    assert 2 * possible < asked
    assert verdict.overall(healthy) == "no verdict"
    reached = tuple(one for one in healthy.verdicts if one.state != "no verdict")
    judged = replace(healthy, replay=replace(healthy.replay, verdicts=reached))
    assert verdict.overall(judged) == "ok"
    assert verdict.headline(judged) == "No drift found in steps 0–39."
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


def test_what_a_detector_is_not_about_is_not_lacking(failing: View) -> None:
    judged = tuple(
        replace(one, state="ok") for one in failing.verdicts if one.state != "no verdict"
    )
    aside = replace(judged[0], state="no verdict", reason="does not apply: it has one slot")
    lacks = replace(judged[0], state="no verdict", reason="", needs=("update.k3 (re-score rows)",))
    view = replace(failing, replay=replace(failing.replay, alerts=(), verdicts=(*judged, aside)))
    assert verdict.headline(view) == "No drift found in steps 0–39."
    verdicts = (*judged, aside, lacks)
    view = replace(failing, replay=replace(failing.replay, alerts=(), verdicts=verdicts))
    assert f"1 of {len(judged) + 1} judgements has no verdict" in verdict.headline(view)
    matrix = verdict.build(view).blocks[0]
    assert isinstance(matrix, Table)
    notes = [cell.note for row in matrix.rows for cell in row if cell.state == "no verdict"]
    assert notes == ["needs movement per update (k3) (re-score rows)"]


def test_a_run_that_was_not_closed_says_so_first(failing: View) -> None:
    assert verdict.notices(failing) == ()
    (told,) = verdict.notices(replace(failing, state="open"))
    assert "crashed, was killed, or is still running" in told
    assert "step 39, written 2026-01-01T00:39:00Z" in told


def test_an_imported_log_says_what_that_means(failing: View) -> None:
    records = tuple(replace(one, labels={"source": "foreign"}) for one in failing.records)
    (told,) = verdict.notices(replace(failing, records=records))
    assert told.startswith("Imported from a log")


def test_the_matrix_and_the_alert_name_the_same_onset(failing: View) -> None:
    worst = failing.findings[0].alert
    later = tuple(
        replace(one, onset=38) if (one.detector, one.role) == (worst.detector, worst.role) else one
        for one in failing.verdicts
    )
    matrix = verdict.build(replace(failing, replay=replace(failing.replay, verdicts=later)))
    table = matrix.blocks[0]
    assert isinstance(table, Table)
    cell = next(cell for row in table.rows for cell in row if cell.href.endswith(worst.id))
    assert cell.note == f"since step {worst.onset}"
