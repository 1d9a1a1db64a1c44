"""One story told of several alerts: the cause first, and the same one to the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from roledrift.detect.incidents import LINKED, SLACK, TAKES_OVER, Incidents
from roledrift.judgement import Incident, Severity
from roledrift.records import Checkpoint
from tests.detect.stories import FALLEN, LONGER, MOVED, closed_alert, make_alert, story_of


def test_one_alert_is_one_incident_in_its_words() -> None:
    (one,) = story_of(MOVED)
    assert (one.id, one.role, one.finding, one.onset, one.reported) == (
        MOVED.id, "generator", "role_drift", 15, 20
    )  # fmt: skip
    assert (one.sentence, one.evidence, one.advice) == (f"{MOVED.title}.", MOVED.text, MOVED.advice)
    assert (one.state, one.severity, one.consequences) == ("open", "failing", ())


def test_the_cause_comes_first_although_it_was_found_later() -> None:
    (one,) = story_of(LONGER, MOVED, FALLEN)
    assert (one.role, one.finding) == ("generator", "role_drift")
    assert [c.finding for c in one.consequences] == ["length_inflation", "accuracy_cliff"]
    assert one.sentence == f"{MOVED.title}. {LONGER.title}. {FALLEN.title}."
    assert one.alerts[0] == MOVED.id
    assert set(one.alerts) == {LONGER.id, MOVED.id, FALLEN.id}
    assert one.id == LONGER.id, "the id of the first alert stays"
    assert one.reported == 18


def test_the_first_cause_stays_when_the_run_gets_sicker() -> None:
    later = make_alert("role_drift", "aggregator", 33, 28)
    engine = make_alert("engine_mismatch", "generator", 40, MOVED.onset + SLACK + 1)
    (one,) = story_of(MOVED, FALLEN, later, engine)
    assert (one.role, one.finding) == ("generator", "role_drift")


@pytest.mark.parametrize("order", [0, 1])
def test_a_role_goes_before_all_roles(order: int) -> None:
    everyone = make_alert("policy_drift", "*", 20, 15)
    (one,) = story_of(*[(MOVED, everyone), (everyone, MOVED)][order])
    assert one.role == "generator"


def test_all_roles_go_before_consequences_of_one() -> None:
    (one,) = story_of(LONGER, make_alert("policy_drift", "*", 20, 15))
    assert (one.role, one.finding) == ("*", "policy_drift")


def test_a_changed_setting_explains_and_is_not_what_is_wrong() -> None:
    why = "the learning rate was raised x5"
    raised = make_alert(
        "learning_rate_raised", "*", 14, severity="suspicious", level="WARN", cause=why
    )
    (alone,) = story_of(raised)
    assert (alone.finding, alone.severity) == ("learning_rate_raised", "suspicious")
    (one,) = story_of(raised, MOVED, FALLEN)
    assert (one.finding, one.role, one.cause) == ("role_drift", "generator", why)
    assert one.sentence.startswith(f"{MOVED.title}, after {why}.")
    assert [c.finding for c in one.consequences] == ["accuracy_cliff"]
    assert one.severity == "failing"
    assert raised.id in one.alerts


def test_it_closes_with_its_last_finding_and_stays_as_it_was() -> None:
    incidents = Incidents()
    incidents.update(18, [LONGER])
    incidents.update(20, [MOVED])
    assert incidents.update(40, [closed_alert(MOVED, 40)]) == (), "a consequence is still open"
    (now,) = incidents.update(45, [closed_alert(LONGER, 45)])
    assert (now.state, now.step) == ("closed", 45)
    assert now.sentence.endswith("It has passed.")
    assert [c.state for c in now.consequences] == ["closed"]
    assert incidents.update(46, []) == ()
    incidents.damage = "everything was lost"
    assert incidents.update(47, []) == ()


@pytest.mark.parametrize(
    ("onset", "count"),
    [
        (MOVED.onset - SLACK - 1, 2), (MOVED.onset - SLACK, 1), (MOVED.onset + LINKED, 1),
        (MOVED.onset + LINKED + 1, 2),
    ],
)  # fmt: skip
def test_a_finding_belongs_to_an_incident_whose_onset_is_near(onset: int, count: int) -> None:
    far = make_alert("length_inflation", "aggregator", 60, onset)
    assert len(story_of(MOVED, far)) == count


def test_a_new_finding_does_not_join_a_closed_incident() -> None:
    assert len(story_of(MOVED, closed_alert(MOVED, 30), LONGER)) == 2


def test_an_escalation_changes_the_incident_and_not_its_id() -> None:
    mild = replace(MOVED, severity="suspicious", level="WARN")
    incidents = Incidents()
    (before,) = incidents.update(20, [mild])
    (after,) = incidents.update(25, [replace(MOVED, state="escalated", step=25, title="Worse")])
    assert (before.severity, after.severity) == ("suspicious", "failing")
    assert before.id == after.id
    assert after.sentence == "Worse."
    assert (after.reported, after.step) == (20, 25)


def test_only_changes_are_told_and_damage_is_one() -> None:
    incidents = Incidents()
    assert len(incidents.update(20, [MOVED])) == 1
    assert incidents.update(21, []) == ()
    incidents.damage = "validation accuracy has fallen from 0.80 (step 10) to 0.20 (step 22)"
    (told,) = incidents.update(22, [])
    assert told.damage == incidents.damage
    fallen = " Validation accuracy has fallen from 0.80 (step 10) to 0.20 (step 22)."
    assert told.sentence.endswith(fallen)


def test_many_consequences_are_counted() -> None:
    more = [make_alert("length_inflation", f"role{i}", 21 + i) for i in range(4)]
    (one,) = story_of(MOVED, *more)
    assert one.sentence.endswith("2 more findings followed.")
    assert len(one.consequences) == 4


def test_open_then_worst_then_earliest_then_specific() -> None:
    def incident(state: Any, severity: Severity, onset: int, role: str) -> Incident:
        id_ = f"{state}{severity}{onset}{role}"
        return Incident(id_, 50, state, severity, role, "f", onset, 50, "S.")

    ranked = [
        incident("open", "failing", 5, "a"),
        incident("open", "failing", 5, "*"),
        incident("open", "failing", 9, "a"),
        incident("open", "input problem", 1, "a"),
        incident("open", "suspicious", 1, "a"),
        incident("closed", "failing", 1, "a"),
    ]
    shuffled = ranked[::-1]
    assert sorted(shuffled, key=lambda one: one.rank) == ranked


def test_the_checkpoint_is_that_of_the_cause() -> None:
    kept = Checkpoint(10, "c-10")
    (one,) = story_of(LONGER, replace(MOVED, checkpoint=kept))
    assert one.checkpoint == kept


def test_what_is_reported_much_later_never_takes_over_as_the_cause() -> None:
    late = make_alert("engine_mismatch", "generator", MOVED.step + TAKES_OVER + 1, MOVED.onset)
    (incident,) = story_of(MOVED, late)
    assert (incident.finding, incident.consequences[0].finding) == (MOVED.finding, late.finding)
    soon = make_alert("engine_mismatch", "generator", MOVED.step + TAKES_OVER, MOVED.onset)
    (incident,) = story_of(MOVED, soon)
    assert incident.finding == soon.finding


def test_an_alert_that_escalates_was_reported_when_it_opened() -> None:
    moved = make_alert("role_drift", "generator", FALLEN.step + 2, FALLEN.onset)
    (incident,) = story_of(FALLEN, moved, replace(moved, state="escalated", step=60))
    assert (incident.finding, incident.reported) == ("role_drift", FALLEN.step)
    (incident,) = story_of(moved, FALLEN, replace(FALLEN, state="escalated", step=60))
    assert [one.step for one in incident.consequences] == [FALLEN.step]


def test_training_damage_is_brought_up_to_date_now_and_then_and_a_validation_at_once() -> None:
    incidents, told = Incidents(), []
    incidents.update(20, [MOVED])
    for step in range(21, 21 + 2 * SLACK):
        incidents.damage = f"training accuracy has fallen to 0.{60 - step}"
        told += [step for _ in incidents.update(step, [])]
    assert told == [21, 21 + SLACK]
    for step in (40, 41):
        incidents.damage = f"validation accuracy has fallen to 0.{step}"
        (now,) = incidents.update(step, [])
        assert now.damage == incidents.damage
