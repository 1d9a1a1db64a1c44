from dataclasses import replace

from roledrift.detect.conclusion import OUTCOMES
from roledrift.judgement import SEVERITIES, Verdict
from roledrift.report.statuses import (
    STATUSES,
    holds,
    incident_status,
    status_of,
    still_open,
    urgency,
)
from tests.notify.alerts import ALERT, INCIDENT


def test_states_stand_in_the_order_of_severities_and_outcomes() -> None:
    assert [status for status in reversed(STATUSES) if status in SEVERITIES] == list(SEVERITIES)
    assert [status for status in reversed(STATUSES) if status in OUTCOMES] == list(OUTCOMES)


def test_an_open_alert_speaks_for_its_verdict() -> None:
    verdict = Verdict("length_inflation", "aggregator", "watch")
    assert status_of(verdict, {}) == "watch"
    assert status_of(verdict, still_open([ALERT])) == "failing"
    over = replace(ALERT, state="closed", level="INFO")
    assert status_of(verdict, still_open([ALERT, over])) == "watch"
    assert status_of(replace(verdict, state="drift"), {}) == "suspicious"
    assert status_of(replace(verdict, state="drift", severity="failing"), {}) == "failing"


def test_the_worst_run_comes_first_then_the_damaged_then_the_earliest() -> None:
    quiet = replace(INCIDENT, damage="")
    order = [
        ("failing", replace(INCIDENT, onset=3)),
        ("failing", INCIDENT),
        ("failing", replace(quiet, onset=1)),
        ("failing", quiet),
        ("input problem", replace(quiet, onset=1)),
        ("suspicious", quiet),
        ("no verdict", None),
        ("clean", None),
        ("unreadable", None),
    ]
    assert sorted(order, key=lambda run: urgency(*run)) == order


def test_an_alert_belongs_to_the_incident_that_names_it() -> None:
    assert holds(INCIDENT, ALERT)
    assert holds(INCIDENT, replace(ALERT, id="b", finding="accuracy_cliff", role="*"))
    assert not holds(INCIDENT, replace(ALERT, id="c", onset=90))
    assert incident_status(INCIDENT) == "failing"
    assert incident_status(replace(INCIDENT, state="closed")) == "closed"
