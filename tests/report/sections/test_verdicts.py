from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from roledrift.detect.incidents import Incidents
from roledrift.judgement import SEVERITIES, Alert, Verdict
from roledrift.report.model import Advice, Lane, Note, Prose, Strip, Table
from roledrift.report.sections import verdict
from roledrift.report.sections.timeline import build as timeline_section
from roledrift.report.view import View
from tests.notify.alerts import ALERT


def timeline(view: View) -> tuple[Lane, ...]:
    (strip,) = timeline_section(view).blocks
    assert isinstance(strip, Strip)
    return strip.lanes


def matrix_of(view: View) -> Table:
    matrix = verdict.build(view).blocks[-1]
    assert isinstance(matrix, Table)
    return matrix


def judged(view: View, *alerts: Alert, verdicts: Sequence[Verdict] = ()) -> View:
    """The view with these alerts and verdicts alone, and the incidents that they make."""
    book = Incidents()
    for alert in alerts:
        book.update(alert.step, [alert])
    seen = replace(view.replay, alerts=alerts, verdicts=tuple(verdicts), incidents=book.incidents)
    return replace(view, replay=seen)


def test_the_incident_comes_first_with_one_plan_and_what_followed(failing: View) -> None:
    sign = replace(
        ALERT, id="s", finding="truncation", role="generator", onset=21, step=24, severity="failing"
    )
    view = judged(failing, ALERT, sign)
    evidence, advice, checkpoint, followed, _ = verdict.build(view).blocks
    assert isinstance(evidence, Prose)
    assert evidence.text.startswith("First reported at step 23. Responses are 3.1")
    assert isinstance(advice, Advice)
    assert advice.items == ALERT.advice
    assert isinstance(checkpoint, Note)
    assert "step 15, out/checkpoint-15" in checkpoint.text
    assert isinstance(followed, Table)
    assert [cell.text for cell in followed.rows[0]] == [
        *("21", "failing", "generator", "truncation", sign.title, "24")
    ]
    assert followed.rows[0][3].href == "#run1-alert-s"


def test_an_incident_that_has_passed_asks_for_nothing(failing: View) -> None:
    over = replace(ALERT, state="closed", level="INFO", step=30)
    kinds = [one.kind for one in verdict.build(judged(failing, ALERT, over)).blocks]
    assert kinds == ["prose", "table"]


def test_further_incidents_are_told_in_their_own_words(failing: View) -> None:
    other = replace(ALERT, id="o", role="generator", onset=90, step=95, severity="suspicious")
    view = judged(failing, ALERT, other)
    table = next(
        one
        for one in verdict.build(view).blocks
        if isinstance(one, Table) and one.title == "Further incidents"
    )
    assert table.rows[0][-1].text == view.replay.incidents[1].sentence
    assert view.conclusion.incident == view.replay.incidents[0]


def test_without_an_incident_there_is_the_matrix_alone(healthy: View) -> None:
    assert [one.kind for one in verdict.build(healthy).blocks] == ["table"]


def test_a_cell_has_the_severity_of_its_open_alert_whatever_is_seen_now(failing: View) -> None:
    detector = ALERT.detector
    watched = Verdict(detector, "aggregator", "watch", value=1.0, onset=22)
    fine = Verdict(detector, "generator", "ok", value=1.0)
    for severity in SEVERITIES:
        view = judged(failing, replace(ALERT, severity=severity), verdicts=[watched, fine])
        row = matrix_of(view).rows[0]
        assert (row[1].state, row[2].state) == ("ok", severity)
        assert row[2].note == "since step 19"
        (lane,) = (bar for lane in timeline(view) for bar in lane.bars if bar.state)
        assert lane.state == severity
    over = replace(ALERT, state="closed", level="INFO", step=30)
    (row,) = matrix_of(judged(failing, ALERT, over, verdicts=[replace(watched, state="ok")])).rows
    assert (row[-1].state, row[-1].note) == ("ok", "failing at steps 19–30, closed")


def test_the_matrix_is_grey_with_a_reason_where_nobody_judged(failing: View) -> None:
    matrix = matrix_of(failing)
    assert matrix.columns == ("detector", "generator", "aggregator", "all roles")
    cells = [cell for row in matrix.rows for cell in row[1:]]
    grey = [cell for cell in cells if cell.state == "no verdict"]
    assert grey
    assert all(cell.note for cell in grey)
    dashes = [cell for cell in cells if cell.text == "–"]
    assert all(not cell.state and cell.note == "" for cell in dashes)
    raised = [cell for cell in cells if cell.state in SEVERITIES]
    assert raised
    assert all(cell.href.startswith("#run1-alert-") for cell in raised)


def test_what_is_lacking_is_named_by_its_title(failing: View) -> None:
    lacks = Verdict("d", "aggregator", "no verdict", needs=("update.k3 (re-score rows)",))
    withheld = Verdict("e", "aggregator", "no verdict", reason="withheld: truncation, since 3")
    aside = Verdict("f", "aggregator", "no verdict", reason="does not apply: it has one slot")
    cells = [row[2] for row in matrix_of(judged(failing, verdicts=[lacks, withheld, aside])).rows]
    assert [cell.note for cell in cells] == [
        "needs movement per update (k3) (re-score rows)",
        "withheld, the input is suspect: truncation",
        "",
    ]


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
    table = matrix_of(replace(failing, replay=replace(failing.replay, verdicts=later)))
    cell = next(cell for row in table.rows for cell in row if cell.href.endswith(worst.id))
    assert cell.note.endswith(f"since step {worst.onset}")
