"""All detectors together: live and replayed alike, taken back exactly, one broken one named."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from roledrift.config import BaselineConfig, Config
from roledrift.detect.catalogue import shipped
from roledrift.detect.conclusion import conclude
from roledrift.detect.suite import DetectorSuite, replay
from roledrift.judgement import Alert, Verdict
from roledrift.records import StepRecord
from roledrift.workflow import VOTING, Workflow
from tests.detect.loud import CARD
from tests.detect.runs import AGGREGATOR, GENERATOR, ISOLATED, Columns, findings, judged


@pytest.fixture
def sick() -> list[StepRecord]:
    """The aggregator's responses grow to x4 from step 21, and shrink again from step 46."""
    run = Columns(seed=1, steps=80)
    run.role[AGGREGATOR, "length"] *= np.exp(run.course({19: 0.0, 24: 1.4, 44: 1.4, 46: 0.0}))
    return run.records()


def _told(suite: DetectorSuite, records: Sequence[StepRecord]) -> list[Alert]:
    return [alert for record in records for alert in suite.update(record)]


def _keys(alerts: Sequence[Alert]) -> list[tuple[str, str, int]]:
    return [(one.id, one.state, one.step) for one in alerts]


def test_before_the_first_record_nothing_is_known() -> None:
    suite = DetectorSuite(VOTING)
    assert {one.state for one in suite.verdicts} == {"no verdict"}
    assert {one.detector for one in suite.verdicts} == {card.name for card in shipped()}
    assert conclude(suite.verdicts, suite.incidents, 0).outcome == "no verdict"


@pytest.mark.parametrize("workflow", [VOTING, ISOLATED])
def test_a_healthy_run_is_clean(workflow: Workflow) -> None:
    for seed in range(6):
        suite, alerts = judged(Columns(workflow, seed, steps=50).records(), workflow)
        assert alerts == []
        assert conclude(suite.verdicts, suite.incidents, 50).outcome == "clean"


def test_a_finding_opens_and_closes(sick: list[StepRecord]) -> None:
    suite, alerts = judged(sick)
    assert [(a.finding, a.role, a.state) for a in alerts] == [
        ("length_inflation", AGGREGATOR, "open"),
        ("length_inflation", AGGREGATOR, "closed"),
    ]
    assert 19 <= alerts[0].onset <= 25
    (incident,) = suite.incidents
    assert incident.state == "closed"
    assert incident.sentence.endswith("It has passed.")
    found = conclude(suite.verdicts, suite.incidents, len(sick))
    assert found.outcome == "suspicious"


def test_replayed_as_live(sick: list[StepRecord]) -> None:
    suite = DetectorSuite(VOTING)
    live, changed = [], []
    for record in sick:
        live += suite.update(record)
        changed += suite.changed
    again = replay(list(reversed(sick)), VOTING)
    assert _keys(again.alerts) == _keys(live)
    assert again.incidents == suite.incidents
    assert again.verdicts == suite.verdicts
    assert changed[-1] == suite.incidents[0]
    assert len({one.id for one in changed}) == 1
    assert [step for step, _, _ in again.series["length_inflation", AGGREGATOR]] == [
        one.step for one in sick[4:]
    ]


def test_a_replayed_alert_has_the_time_of_its_record(sick: list[StepRecord]) -> None:
    for alert in replay([replace(one, time=f"t{one.step}") for one in sick], VOTING).alerts:
        assert alert.time == f"t{alert.step}"


@pytest.mark.parametrize(("at", "back_to"), [(40, 12), (40, 23), (40, 33), (55, 33), (60, 58)])
def test_a_run_taken_back_is_judged_as_if_the_lost_steps_never_were(
    sick: list[StepRecord], at: int, back_to: int
) -> None:
    suite = DetectorSuite(VOTING)
    _told(suite, sick[:at])
    after = _told(suite, sick[back_to:])
    straight = DetectorSuite(VOTING)
    expected = _told(straight, sick)
    if back_to < 25:
        assert after[0].state == "closed"
        assert "went back from step 40" in after[0].text
        assert _keys(after[1:]) == _keys(expected)
    assert suite.verdicts == straight.verdicts
    assert suite.incidents == straight.incidents
    assert replay([*sick[:at], *sick[back_to:]], VOTING).incidents == straight.incidents


@pytest.mark.parametrize("back_to", [12, 23, 33])
def test_incidents_that_are_stored_are_right_after_a_run_went_back(
    sick: list[StepRecord], back_to: int
) -> None:
    suite, stored = DetectorSuite(VOTING), {}
    for record in [*sick[:40], *sick[back_to : back_to + 2]]:
        suite.update(record)
        stored |= {one.id: one for one in suite.changed}
    straight = DetectorSuite(VOTING)
    _told(straight, sick[: back_to + 2])
    still_open = {one.id: one for one in straight.incidents if one.state == "open"}
    assert {one.id: one for one in stored.values() if one.state == "open"} == still_open
    assert all("went back" in one.sentence for id_, one in stored.items() if id_ not in still_open)


def test_a_run_taken_back_far_starts_over(sick: list[StepRecord]) -> None:
    suite = DetectorSuite(VOTING)
    _told(suite, [StepRecord(t) for t in range(200)])
    suite.update(replace(sick[0], step=3))
    assert suite.board.records == 1


@pytest.mark.parametrize("steps", [20, 200])
def test_a_run_taken_back_again_and_again_starts_where_it_did(steps: int) -> None:
    suite = DetectorSuite(VOTING)
    for _ in range(3):
        suite.update(StepRecord(0))
        assert suite.board.records == 1
        _told(suite, [StepRecord(t) for t in range(1, steps)])


def test_gaps_and_empty_records_change_nothing(sick: list[StepRecord]) -> None:
    straight = judged(sick)[1]
    mixed = [x for one in sick for x in (one, StepRecord(step=one.step))]
    doubled = [replace(one, step=i) for i, one in enumerate(mixed)]
    assert [a.finding for a in judged(doubled)[1]] == [a.finding for a in straight]
    spread = [replace(one, step=7 * one.step) for one in sick]
    assert [a.step for a in judged(spread)[1]] == [7 * a.step for a in straight]


def test_it_can_be_copied(sick: list[StepRecord]) -> None:
    suite = DetectorSuite(VOTING)
    _told(suite, sick[:22])
    other = copy.deepcopy(suite)
    assert _keys(_told(suite, sick[22:])) == _keys(_told(other, sick[22:]))
    assert suite.verdicts == other.verdicts


class _Broken:
    name = "loudness"

    def __init__(self, context: object) -> None:
        del context

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        if 10 <= record.step < 20:
            raise ZeroDivisionError("no luck")
        return [Verdict(self.name, GENERATOR, "ok", reason="fine")]


BROKEN = replace(CARD, make=_Broken)


def test_a_broken_detector_is_named_and_the_others_go_on(sick: list[StepRecord]) -> None:
    suite = DetectorSuite(VOTING, detectors=[BROKEN, *shipped()])
    alerts = _told(suite, sick[:15])
    broken = [one for one in suite.verdicts if one.detector == "loudness"]
    assert {one.state for one in broken} == {"no verdict"}
    assert "the detector failed in step 15 (ZeroDivisionError: no luck)" in broken[0].reason
    assert suite.faults == {"loudness": "ZeroDivisionError: no luck"}
    alerts += _told(suite, sick[15:])
    assert [a.state for a in alerts] == ["open", "closed"]
    assert [v.state for v in suite.verdicts if v.detector == "loudness"] == ["ok"]


def test_one_that_never_worked_has_no_verdict() -> None:
    suite = DetectorSuite(VOTING, detectors=[BROKEN])
    suite.update(StepRecord(12))
    assert {one.state for one in suite.verdicts} == {"no verdict"}
    assert conclude(suite.verdicts, suite.incidents, 1).outcome == "no verdict"


def test_only_the_findings_asked_for_are_judged(sick: list[StepRecord]) -> None:
    suite, alerts = judged(sick, config=Config(findings=("accuracy_cliff",)))
    assert alerts == []
    assert {one.detector for one in suite.verdicts} == {"accuracy_cliff"}
    _, alerts = judged(sick, config=Config(findings=("length_inflation",)))
    assert findings(alerts) == {("length_inflation", AGGREGATOR)}


def test_lengths_alone_are_enough_for_who_asks_for_lengths() -> None:
    run = Columns(seed=2)
    records = [
        StepRecord(one.step, groups={r: {"length": s["length"]} for r, s in one.groups.items()})
        for one in run.records()
    ]
    for wanted, outcome in (((), "no verdict"), (("length_inflation",), "clean")):
        suite, _ = judged(records, config=Config(findings=wanted))
        assert conclude(suite.verdicts, suite.incidents, run.steps).outcome == outcome


@pytest.mark.parametrize(
    ("asked", "stops"),
    [((), False), (("length_inflation",), True), (("suspicious",), True), (("failing",), False)],
)
def test_what_stops_a_run(sick: list[StepRecord], asked: tuple[str, ...], stops: bool) -> None:
    _, alerts = judged(sick, config=Config(stop_on=asked))
    assert alerts[0].severity == "suspicious"
    assert [one.stops for one in alerts] == [stops, False]


def test_a_reference_run_is_the_start_from_the_first_step_on() -> None:
    healthy = Columns(seed=4, steps=20).records()
    run = Columns(seed=5, steps=20)
    run.role[AGGREGATOR, "length"] *= 3.0
    assert judged(run.records())[1] == []
    found = replay(run.records(), VOTING, reference=list(reversed(healthy)))
    (alert,) = found.alerts
    assert (alert.finding, alert.onset) == ("length_inflation", 1)
    assert alert.step <= 6
    assert alert.baseline == pytest.approx(12.0, rel=0.1)
    short = Config(baseline=BaselineConfig(window=4))
    assert judged(run.records(), config=short, reference=healthy)[1][0].onset == 1


def test_every_detector_judges_eight_roles() -> None:
    workflow = Workflow.of({f"role{i}": 1 for i in range(8)})
    suite, _ = judged(Columns(workflow, steps=6).records(), workflow)
    assert len({one.detector for one in suite.verdicts}) == len(shipped())
