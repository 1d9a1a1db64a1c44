"""Severities, ids and the order of incidents."""

from dataclasses import replace

from roledrift.judgement import (
    LAYERS,
    LEVEL_OF,
    SEVERITIES,
    Alert,
    Incident,
    Verdict,
    alert_id,
)

ALERT = Alert(
    id="a1",
    detector="length_inflation",
    finding="length_inflation",
    role="aggregator",
    policy="shared",
    level="ERROR",
    state="open",
    step=12,
    onset=10,
    title="The aggregator has written x2.0 as much since step 10",
    text="",
)
INCIDENT = Incident("a1", 12, "open", "failing", "aggregator", "length_inflation", 10, 12, "")


def test_an_id_depends_on_detector_role_and_onset_alone() -> None:
    """Golden: ids are in files that people keep."""
    assert alert_id("length_inflation", "aggregator", 19) == "936baaeb"
    assert len({alert_id("a", "b", 3), alert_id("a", "b", 4), alert_id("a", "c", 3)}) == 3


def test_every_severity_has_a_level_and_causes_come_first() -> None:
    assert set(LEVEL_OF) == set(SEVERITIES)
    assert [LEVEL_OF[one] for one in SEVERITIES] == ["ERROR", "ERROR", "WARN"]
    assert LAYERS.index("setting") < LAYERS.index("movement") < LAYERS.index("outcome")


def test_an_alert_of_an_earlier_version_gets_the_severity_of_its_level() -> None:
    assert ALERT.graded == "failing"
    assert replace(ALERT, level="WARN").graded == "suspicious"
    assert replace(ALERT, level="WARN", severity="failing").graded == "failing"


def test_a_verdict_that_does_not_apply() -> None:
    assert Verdict("d", "r", "no verdict", reason="needs texts").applies
    assert not Verdict("d", "r", "no verdict", reason="does not apply: one slot").applies
    assert Verdict("d", "r", "ok", reason="does not apply").applies


def test_incidents_are_ordered_by_state_severity_onset_and_how_specific_they_are() -> None:
    everyone = replace(INCIDENT, role="*")
    later = replace(INCIDENT, onset=11)
    fault = replace(INCIDENT, severity="input problem", onset=1)
    closed = replace(INCIDENT, state="closed", onset=0)
    expected = [INCIDENT, everyone, later, fault, closed]
    given = expected[::-1]
    assert sorted(given, key=lambda one: one.rank) == expected
