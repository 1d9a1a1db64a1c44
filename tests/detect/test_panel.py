from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from roledrift.config import Config
from roledrift.detect import DETECTORS
from roledrift.detect.length_inflation import LengthInflation
from roledrift.detect.panel import Panel, replay
from roledrift.records import Alert, StepRecord, Verdict
from roledrift.thresholds import DetectorsConfig, LengthInflationConfig
from roledrift.workflow import VOTING

SEEDS, STEPS = 200, 100


def told(panel: Panel, records: Sequence[StepRecord]) -> list[Alert]:
    return [alert for record in records for alert in panel.update(record)]


def keys(alerts: Sequence[Alert]) -> list[tuple[str, str, int]]:
    return [(alert.id, alert.state, alert.step) for alert in alerts]


@pytest.fixture
def inflating(run: Any, ramp: Any) -> list[StepRecord]:
    """Aggregator 5 -> 18 tokens from step 20 on, and back again from step 50 on."""
    up = ramp(5.0, 18.0, start=20, length=10, steps=50)
    down = ramp(18.0, 5.0, start=0, length=5, steps=40)
    return run(  # type: ignore[no-any-return]
        {"aggregator": {"length": up + down}, "generator": {"length": [18.0] * 90}}
    )


@pytest.fixture
def healthy(run: Any, noise: Any) -> Any:
    """A healthy run in numbers: autocorrelated lognormal noise with outliers of six orders."""

    def make(seed: int) -> list[StepRecord]:
        rng = np.random.default_rng(seed)

        def share(value: float) -> Any:
            moving = value + 0.06 * np.log(noise(rng, STEPS, sd=1.0))
            odd = rng.random(STEPS) < 0.02
            return np.clip(np.where(odd, rng.random(STEPS), moving), 0, 1)

        columns = {
            role: {
                "length": tokens * noise(rng, STEPS, sd=0.1, outliers=0.02, up_to=5),
                "update.k3": k3 * noise(rng, STEPS, sd=0.8, outliers=0.03, up_to=1e6),
                "terse": share(terse),
                "bare_stamp": share(terse),
            }
            for role, tokens, k3, terse in (
                ("generator", 18.0, 5e-4, 0.02),
                ("aggregator", 5.0, 2e-3, 0.88),
            )
        }
        return run(columns)  # type: ignore[no-any-return]

    return make


@pytest.mark.parametrize("routing", ["shared", "isolated"])
def test_false_alarms_on_healthy_runs(healthy: Any, routing: Any) -> None:
    """Stated rate: at most 2 of 200 healthy runs of 100 steps raise anything; measured: 0 and 1."""
    workflow = VOTING.routed(routing)
    raised = [seed for seed in range(SEEDS) if told(Panel(workflow), healthy(seed))]
    assert len(raised) <= 2, raised


def test_before_the_first_record_nothing_is_known() -> None:
    panel = Panel(VOTING)
    assert {one.state for one in panel.verdicts} == {"no verdict"}
    assert {(one.detector, one.role) for one in panel.verdicts} == {
        (name, role) for name in DETECTORS for role in VOTING.role_names
    }


def test_a_detector_lists_only_the_roles_it_watches(inflating: Any) -> None:
    panel = Panel(VOTING)
    panel.update(inflating[0])
    assert [v.role for v in panel.verdicts if v.detector == "length_inflation"] == ["aggregator"]


def test_an_alert_opens_and_closes_and_stops_if_asked(inflating: Any) -> None:
    alerts = told(Panel(VOTING, Config(stop_on=("length_inflation",))), inflating)
    assert [(a.detector, a.state, a.stops) for a in alerts] == [
        ("length_inflation", "open", True),
        ("length_inflation", "closed", False),
    ]
    assert 20 <= alerts[0].onset <= 24
    assert alerts[0].step <= 30
    assert alerts[0].level == "ERROR"
    assert alerts[0].title.startswith("aggregator: answers x")


def test_a_detector_can_be_switched_off(inflating: Any) -> None:
    off = DetectorsConfig(length_inflation=LengthInflationConfig(enabled=False))
    panel = Panel(VOTING, Config(detectors=off))
    assert told(panel, inflating) == []
    assert "length_inflation" not in {one.detector for one in panel.verdicts}


def test_replay_gives_the_same_alerts_as_live(inflating: Any) -> None:
    live = told(Panel(VOTING), inflating)
    again = replay(reversed(inflating), VOTING)
    assert keys(again.alerts) == keys(live)
    series = again.series["length_inflation", "aggregator"]
    assert len(series) == len(inflating) - 8
    assert series[-1][:2] == (89, pytest.approx(5.0))
    assert all(threshold is not None for _, _, threshold in series)


def test_the_replayed_alert_has_the_time_of_its_record(inflating: Any) -> None:
    timed = [replace(one, time=f"t{one.step}") for one in inflating]
    for alert in replay(timed, VOTING).alerts:
        assert alert.time == f"t{alert.step}"


def test_gaps_in_the_steps_are_no_trouble(inflating: Any) -> None:
    sparse = [one for one in inflating if one.step % 7]
    assert [a.state for a in told(Panel(VOTING), sparse)] == ["open", "closed"]


@pytest.mark.parametrize("back_to", [17, 22, 27, 40])
def test_a_run_taken_back_is_judged_as_if_the_lost_steps_never_were(
    inflating: Any, back_to: int
) -> None:
    panel = Panel(VOTING)
    before = told(panel, inflating[:45])
    after = told(panel, inflating[back_to:])
    straight = told(Panel(VOTING), inflating)
    final = replay([*inflating[:45], *inflating[back_to:]], VOTING).alerts
    assert keys(final) == keys(straight)
    assert {a.id for a in before} == {straight[0].id}
    if back_to <= straight[0].step:
        assert [a.state for a in after] == ["closed", "open", "closed"]
        assert "went back from step 44" in after[0].text
        assert keys(after[1:]) == keys(straight)
    else:
        assert keys(after) == keys(straight[1:])
    assert panel.verdicts == replay(inflating, VOTING).verdicts


def test_a_run_that_starts_over_learns_its_baseline_again(inflating: Any, run: Any) -> None:
    panel = Panel(VOTING)
    told(panel, inflating[:50])
    other = run({"aggregator": {"length": [18.0] * 30}, "generator": {"length": [18.0] * 30}})
    assert [a.state for a in told(panel, other)] == ["closed"]
    (verdict,) = [v for v in panel.verdicts if v.detector == "length_inflation"]
    assert verdict.state == "ok"
    assert verdict.baseline == pytest.approx(18.0)


def test_a_run_taken_back_far_starts_over(run: Any) -> None:
    records = run({"aggregator": {"length": [5.0] * 300}})
    panel = Panel(VOTING)
    told(panel, records)
    panel.update(records[20])
    (verdict,) = [v for v in panel.verdicts if v.detector == "length_inflation"]
    assert verdict.needs == ("7 more steps of baseline",)


class Broken:
    """A detector that fails from step 10 to step 19."""

    name = "broken"

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        if 10 <= record.step < 20:
            raise ZeroDivisionError("no luck")
        return [Verdict(self.name, "generator", "ok", reason="fine")]


def test_a_broken_detector_is_named_and_does_not_silence_the_others(inflating: Any) -> None:
    config = Config()
    panel = Panel(VOTING, config, detectors=[Broken(), LengthInflation(VOTING, config)])
    alerts = told(panel, inflating[:15])
    broken = [one for one in panel.verdicts if one.detector == "broken"]
    assert {one.state for one in broken} == {"no verdict"}
    assert "ZeroDivisionError: no luck" in broken[0].reason
    assert panel.faults == {"broken": "ZeroDivisionError: no luck"}
    alerts += told(panel, inflating[15:])
    assert [a.state for a in alerts] == ["open", "closed"]
    assert [v.state for v in panel.verdicts if v.detector == "broken"] == ["ok"]


def test_a_detector_that_never_worked_has_no_verdict(inflating: Any) -> None:
    panel = Panel(VOTING, detectors=[Broken()])
    panel.update(inflating[12])
    assert {one.state for one in panel.verdicts} == {"no verdict"}


def test_an_empty_record_changes_nothing(inflating: Any) -> None:
    mixed = [x for one in inflating for x in (one, StepRecord(step=1000 + one.step))]
    doubled = [replace(one, step=i) for i, one in enumerate(mixed)]
    assert [a.state for a in told(Panel(VOTING), doubled)] == ["open", "closed"]


def test_a_reference_run_is_the_baseline_from_the_first_step(run: Any) -> None:
    healthy = run({"aggregator": {"length": [5.0, 5.2, 4.9, 5.1, 5.0, 5.3, 4.8, 5.0, 90.0]}})
    grown = run({"aggregator": {"length": [15.0] * 12}})
    alone = replay(grown, VOTING)
    beside = replay(grown, VOTING, reference=healthy)
    assert not alone.alerts
    (alert,) = [one for one in beside.alerts if one.detector == "length_inflation"]
    assert alert.onset == grown[0].step
    assert alert.baseline == pytest.approx(5.0, abs=0.1)
    assert beside.alerts == replay(grown, VOTING, reference=list(reversed(healthy))).alerts
