"""One story told of several alerts: the cause first, and the same one to the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from roledrift.detect.conclusion import conclude
from roledrift.detect.incidents import LINKED, SLACK, Incidents
from roledrift.judgement import Alert, Incident, Layer, Severity, Verdict, alert_id
from roledrift.records import Checkpoint

LAYER: dict[str, Layer] = {
    "learning_rate_raised": "setting", "engine_mismatch": "input", "role_drift": "movement",
    "policy_drift": "movement", "length_inflation": "text", "accuracy_cliff": "outcome",
}  # fmt: skip


def _alert(finding: str, role: str, step: int, onset: int | None = None, **other: Any) -> Alert:
    onset = step if onset is None else onset
    known: dict[str, Any] = {
        "policy": "p", "level": "ERROR", "state": "open", "severity": "failing",
        "title": f"{finding} of {role} since step {onset}", "text": f"Numbers of {finding}.",
        "layer": LAYER[finding], "advice": (f"mend {finding}",),
    }  # fmt: skip
    id_ = alert_id(finding, role, onset)
    return Alert(id_, finding, finding, role, step=step, onset=onset, **known | other)


def _closed(alert: Alert, step: int) -> Alert:
    return replace(alert, state="closed", step=step, level="INFO")


def _story(*alerts: Alert) -> tuple[Incident, ...]:
    incidents = Incidents()
    for alert in alerts:
        incidents.update(alert.step, [alert])
    return incidents.incidents


MOVED = _alert("role_drift", "generator", 20, 15)
LONGER = _alert("length_inflation", "aggregator", 18, 16)
FALLEN = _alert("accuracy_cliff", "*", 30, 24)


def test_one_alert_is_one_incident_in_its_words() -> None:
    (one,) = _story(MOVED)
    assert (one.id, one.role, one.finding, one.onset, one.reported) == (
        MOVED.id, "generator", "role_drift", 15, 20
    )  # fmt: skip
    assert (one.sentence, one.evidence, one.advice) == (f"{MOVED.title}.", MOVED.text, MOVED.advice)
    assert (one.state, one.severity, one.consequences) == ("open", "failing", ())


def test_the_cause_comes_first_although_it_was_found_later() -> None:
    (one,) = _story(LONGER, MOVED, FALLEN)
    assert (one.role, one.finding) == ("generator", "role_drift")
    assert [c.finding for c in one.consequences] == ["length_inflation", "accuracy_cliff"]
    assert one.sentence == f"{MOVED.title}. {LONGER.title}. {FALLEN.title}."
    assert one.alerts[0] == MOVED.id
    assert set(one.alerts) == {LONGER.id, MOVED.id, FALLEN.id}
    assert one.id == LONGER.id, "the id of the first alert stays"
    assert one.reported == 18


def test_the_first_cause_stays_when_the_run_gets_sicker() -> None:
    later = _alert("role_drift", "aggregator", 33, 28)
    engine = _alert("engine_mismatch", "generator", 40, MOVED.onset + SLACK + 1)
    (one,) = _story(MOVED, FALLEN, later, engine)
    assert (one.role, one.finding) == ("generator", "role_drift")


@pytest.mark.parametrize("order", [0, 1])
def test_a_role_goes_before_all_roles(order: int) -> None:
    everyone = _alert("policy_drift", "*", 20, 15)
    (one,) = _story(*[(MOVED, everyone), (everyone, MOVED)][order])
    assert one.role == "generator"


def test_all_roles_go_before_consequences_of_one() -> None:
    (one,) = _story(LONGER, _alert("policy_drift", "*", 20, 15))
    assert (one.role, one.finding) == ("*", "policy_drift")


def test_a_changed_setting_explains_and_is_not_what_is_wrong() -> None:
    why = "the learning rate was raised x5"
    raised = _alert("learning_rate_raised", "*", 14, severity="suspicious", level="WARN", cause=why)
    (alone,) = _story(raised)
    assert (alone.finding, alone.severity) == ("learning_rate_raised", "suspicious")
    (one,) = _story(raised, MOVED, FALLEN)
    assert (one.finding, one.role, one.cause) == ("role_drift", "generator", why)
    assert one.sentence.startswith(f"{MOVED.title}, after {why}.")
    assert [c.finding for c in one.consequences] == ["accuracy_cliff"]
    assert one.severity == "failing"
    assert raised.id in one.alerts


def test_it_closes_with_its_last_finding_and_stays_as_it_was() -> None:
    incidents = Incidents()
    incidents.update(18, [LONGER])
    incidents.update(20, [MOVED])
    assert incidents.update(40, [_closed(MOVED, 40)]) == (), "a consequence is still open"
    (now,) = incidents.update(45, [_closed(LONGER, 45)])
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
    far = _alert("length_inflation", "aggregator", 60, onset)
    assert len(_story(MOVED, far)) == count


def test_a_new_finding_does_not_join_a_closed_incident() -> None:
    assert len(_story(MOVED, _closed(MOVED, 30), LONGER)) == 2


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
    more = [_alert("length_inflation", f"role{i}", 21 + i) for i in range(4)]
    (one,) = _story(MOVED, *more)
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
    (one,) = _story(LONGER, replace(MOVED, checkpoint=kept))
    assert one.checkpoint == kept


def _verdicts(reached: int, missing: int, odd: int = 0) -> list[Verdict]:
    return [
        *(Verdict("d", f"r{i}", "ok") for i in range(reached)),
        *(Verdict("d", f"m{i}", "no verdict", needs=("lengths",)) for i in range(missing)),
        *(Verdict("d", f"n{i}", "no verdict", reason="does not apply: x") for i in range(odd)),
    ]


@pytest.mark.parametrize(
    ("reached", "missing", "odd", "outcome"),
    [(4, 0, 0, "clean"), (2, 2, 9, "clean"), (1, 2, 0, "no verdict"), (0, 0, 3, "no verdict"),
     (0, 0, 0, "no verdict")],
)  # fmt: skip
def test_less_than_half_of_the_verdicts_is_none(
    reached: int, missing: int, odd: int, outcome: str
) -> None:
    found = conclude(_verdicts(reached, missing, odd), (), 30)
    assert (found.outcome, found.reached, found.applicable) == (outcome, reached, reached + missing)
    assert found.needs == (("lengths",) if missing else ())
    assert ("Not measured: lengths." in found.sentence) == (outcome == "no verdict" and missing > 0)


def test_no_step_is_no_verdict() -> None:
    found = conclude(_verdicts(4, 0), (), 0)
    assert (found.outcome, found.sentence) == ("no verdict", "No step was recorded.")


def test_an_open_incident_is_the_outcome_and_one_that_has_passed_is_suspicious() -> None:
    (one,) = _story(MOVED)
    found = conclude(_verdicts(0, 4), (one,), 30)
    assert (found.outcome, found.sentence, found.incident) == ("failing", one.sentence, one)
    (passed,) = _story(MOVED, _closed(MOVED, 30))
    assert conclude(_verdicts(4, 0), (passed,), 30).outcome == "suspicious"
    (input_,) = _story(_alert("engine_mismatch", "a", 3, severity="input problem"))
    assert conclude(_verdicts(4, 0), (input_,), 30).outcome == "input problem"
