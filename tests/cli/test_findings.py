from dataclasses import replace

import pytest

from roledrift.cli.findings import check_names, findings_of, silence
from roledrift.detect.incidents import Incidents
from roledrift.detect.suite import Replay
from roledrift.errors import ConfigError
from roledrift.judgement import Alert, Verdict
from tests.notify.alerts import ALERT

EARLIER = replace(
    ALERT, id="b", finding="truncation", detector="training_data", severity="suspicious", step=21,
    onset=18, layer="input", title="Responses of the aggregator have been truncated since step 18",
)  # fmt: skip


def replayed(*alerts: Alert) -> Replay:
    book = Incidents()
    for alert in alerts:
        book.update(alert.step, [alert])
    verdicts = (
        Verdict("training_data", "aggregator", "drift", "truncation"),
        Verdict("length_inflation", "aggregator", "watch"),
        Verdict("accuracy_cliff", "*", "ok"),
    )
    return Replay(verdicts, alerts, {}, {}, book.incidents)


def test_a_finding_is_as_bad_as_its_alert_ever_was() -> None:
    milder = replace(ALERT, severity="suspicious", step=20)
    over = replace(ALERT, level="INFO", state="closed", step=30, severity="suspicious")
    (finding,) = findings_of(replayed(milder, replace(ALERT, severity="failing"), over))
    assert (finding.severity, finding.state, finding.since) == ("failing", "closed", 19)


def test_the_worst_comes_first_and_names_its_incident() -> None:
    told = replayed(EARLIER, ALERT)
    (incident,) = told.incidents
    assert [(one.finding, one.incident) for one in findings_of(told)] == [
        ("length_inflation", incident.id),
        ("truncation", incident.id),
    ]


def test_an_alert_from_before_severities_has_that_of_its_level() -> None:
    (finding,) = findings_of(replayed(replace(ALERT, level="WARN")))
    assert finding.severity == "suspicious"


def test_what_is_watched_is_no_finding() -> None:
    assert findings_of(replayed()) == ()


def test_names_are_those_of_findings() -> None:
    check_names([])
    check_names(["truncation", "length_inflation"])
    with pytest.raises(ConfigError, match="did you mean 'truncation'"):
        check_names(["truncate"])


def test_silence_is_a_finding_without_an_alert() -> None:
    quiet = silence(19, 500.0)
    assert (quiet.severity, quiet.id, quiet.since) == ("suspicious", "", 19)
    assert "500 s since step 19" in quiet.text
