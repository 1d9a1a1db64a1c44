from __future__ import annotations

from dataclasses import replace

from roledrift.judgement import SEVERITIES, Verdict
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Table
from roledrift.report.sections import alerts, verdicts
from tests.notify.alerts import ALERT
from tests.report.conftest import judged


def matrix_of(run: JudgedRun) -> Table:
    (matrix,) = verdicts.build(run).blocks
    assert isinstance(matrix, Table)
    return matrix


def severities_of_alerts(run: JudgedRun) -> list[str]:
    table = alerts.build(run).blocks[0]
    assert isinstance(table, Table)
    return [row[1].state for row in table.rows if row[-1].text == "open"]


def test_the_matrix_and_the_alerts_never_disagree(failing: JudgedRun) -> None:
    detector = ALERT.detector
    watched = Verdict(detector, "aggregator", "watch", value=1.0, onset=22)
    fine = Verdict(detector, "generator", "ok", value=1.0)
    for severity in SEVERITIES:
        run = judged(failing, replace(ALERT, severity=severity), latest=[watched, fine])
        row = matrix_of(run).rows[0]
        assert (row[1].state, row[2].state) == ("ok", severity)
        assert row[2].note == "since step 19"
        assert severities_of_alerts(run) == [severity]
    over = replace(ALERT, state="closed", level="INFO", step=30)
    (row,) = matrix_of(judged(failing, ALERT, over, latest=[replace(watched, state="ok")])).rows
    assert (row[-1].state, row[-1].note) == ("ok", "failing at steps 19–30, closed")


def test_the_matrix_is_grey_with_a_reason_where_nobody_judged(failing: JudgedRun) -> None:
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


def test_what_is_lacking_is_named_by_its_title(failing: JudgedRun) -> None:
    lacks = Verdict("d", "aggregator", "no verdict", needs=("update.k3 (re-score rows)",))
    withheld = Verdict("e", "aggregator", "no verdict", reason="withheld: truncation, since 3")
    aside = Verdict("f", "aggregator", "no verdict", reason="does not apply: it has one slot")
    table = matrix_of(judged(failing, latest=[lacks, withheld, aside]))
    assert [row[2].note for row in table.rows] == [
        "needs movement per update (k3) (re-score rows)",
        "withheld, the input is suspect: truncation",
    ]
    assert table.caption.endswith("Not applicable to this run: f.")


def test_only_a_run_without_a_verdict_shows_them_at_once(
    failing: JudgedRun, empty: JudgedRun
) -> None:
    assert not verdicts.build(failing).opened
    assert verdicts.build(empty).opened


def test_the_matrix_and_the_alert_name_the_same_onset(failing: JudgedRun) -> None:
    worst = failing.findings[0].alert
    later = tuple(
        replace(one, onset=38) if (one.detector, one.role) == (worst.detector, worst.role) else one
        for one in failing.verdicts
    )
    table = matrix_of(replace(failing, replay=replace(failing.replay, verdicts=later)))
    cell = next(cell for row in table.rows for cell in row if cell.href.endswith(worst.id))
    assert cell.note.endswith(f"since step {worst.onset}")
