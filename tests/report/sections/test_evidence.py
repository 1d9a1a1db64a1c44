from __future__ import annotations

from dataclasses import replace

from roledrift.report.judged_run import JudgedRun
from roledrift.report.sections.evidence import evidence_of
from roledrift.sums import EVERYONE
from tests.notify.alerts import ALERT


def test_a_statistic_of_a_role_is_shown_of_all_roles(failing: JudgedRun) -> None:
    shown = evidence_of(failing, replace(ALERT, role="aggregator", statistic="length"))
    assert shown.title == "Response length, tokens, mean"
    assert list(shown.curves) == ["generator", "aggregator"]
    assert shown.curves["aggregator"] == failing.curve("aggregator", "length")


def test_what_no_record_holds_is_what_the_detector_judged(failing: JudgedRun) -> None:
    series = {
        ("d", "generator"): ((5, 1.0, None), (6, None, 2.0)),
        ("d", "aggregator"): ((5, 3.0, None),),
        ("d", EVERYONE): ((5, 99.0, None),),
    }
    run = replace(failing, replay=replace(failing.replay, series=series))
    shown = evidence_of(run, replace(ALERT, detector="d", role="generator", statistic="gap"))
    assert list(shown.curves) == ["generator", "aggregator"], "all roles are on another scale"
    assert shown.curves["aggregator"] == {5: 3.0}
    assert shown.limit == {6: 2.0}
    whole = evidence_of(run, replace(ALERT, detector="d", role=EVERYONE, statistic="gap"))
    assert whole.curves == {EVERYONE: {5: 99.0}}


def test_accuracy_and_settings_are_numbers_of_the_step(failing: JudgedRun) -> None:
    accuracy = replace(ALERT, role=EVERYONE, statistic="val_accuracy")
    assert evidence_of(failing, accuracy).curves == {EVERYONE: failing.validation}
    records = tuple(replace(one, totals={"lr": 0.1}) for one in failing.records)
    rate = evidence_of(replace(failing, records=records), replace(ALERT, statistic="factor"))
    assert rate.title == "Learning rate"
    assert set(rate.curves[EVERYONE].values()) == {0.1}


def test_a_finding_without_any_curve_has_none(failing: JudgedRun) -> None:
    run = replace(failing, replay=replace(failing.replay, series={}))
    assert evidence_of(run, replace(ALERT, statistic="unheard-of")).curves == {}
