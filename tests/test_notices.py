from dataclasses import replace

from roledrift.judgement import Consequence, Incident
from roledrift.notices import Notice, Notices
from tests.notify.alerts import ALERT, INCIDENT

QUIET = replace(INCIDENT, severity="suspicious", consequences=(), damage="")
LATER = Consequence("c", "generator", "truncation", "suspicious", 22, 24, "responses truncated")


def told(*states: Incident) -> list[str]:
    notices = Notices()
    return [one.change for state in states for one in notices.update([state], [])]


def test_a_change_that_matters_is_told_once() -> None:
    assert told(QUIET) == ["opened"]
    assert told(QUIET, QUIET, replace(QUIET, step=24, damage="reward fell")) == ["opened"]
    assert told(QUIET, replace(QUIET, severity="failing")) == ["opened", "worsened"]
    assert told(QUIET, replace(QUIET, role="generator")) == ["opened", "revised"]
    assert told(QUIET, replace(QUIET, consequences=(LATER,))) == ["opened", "followed"]
    over = replace(QUIET, state="closed")
    assert told(QUIET, over, over) == ["opened", "closed"]
    assert told(QUIET, over, QUIET) == ["opened", "closed", "opened"]
    assert told(over) == []


def test_a_finding_that_joins_and_makes_it_worse_is_one_notice() -> None:
    both = replace(QUIET, severity="failing", consequences=(LATER,))
    assert told(QUIET, both) == ["opened", "worsened"]


def test_a_finding_that_passes_within_an_open_incident_is_not_told() -> None:
    had = replace(QUIET, consequences=(LATER,))
    passed = replace(QUIET, consequences=(replace(LATER, state="closed"),))
    assert told(QUIET, had, passed) == ["opened", "followed"]


def test_the_text_is_the_sentence_or_a_line_that_names_the_incident() -> None:
    notices = Notices()
    (opened,) = notices.update([QUIET], [ALERT])
    assert opened.text == QUIET.sentence
    assert (opened.alert, opened.stops, opened.level) == (ALERT, True, "WARN")
    alert = replace(ALERT, id="c", role="generator", finding="truncation", stops=False)
    (then,) = notices.update([replace(QUIET, consequences=(LATER,))], [alert])
    assert then.text == f"responses truncated (incident {QUIET.id}: aggregator length_inflation)"
    assert (then.alert, then.stops) == (alert, False)
    (worse,) = notices.update([INCIDENT], [])
    assert (worse.text, worse.level) == (INCIDENT.sentence, "ERROR")
    (over,) = notices.update([replace(INCIDENT, state="closed")], [replace(ALERT, state="closed")])
    assert (over.severity, over.level, over.alert) == (None, "INFO", None)


def test_silence_is_suspicious_and_its_end_is_not() -> None:
    quiet = Notice("silent", 4, "No step was finished for 51 s.")
    assert (quiet.severity, quiet.level) == ("suspicious", "WARN")
    assert Notice("resumed", 5, "Step 5 was finished.").level == "INFO"
