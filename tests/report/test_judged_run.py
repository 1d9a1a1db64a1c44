from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from roledrift.config import BaselineConfig, Config
from roledrift.detect.incidents import Incidents
from roledrift.judgement import Alert, AlertState, Level
from roledrift.records import RunHeader
from roledrift.report.judged_run import JudgedRun, findings, load, thinned
from roledrift.store.writer import RunWriter
from roledrift.workflow import VOTING


def alert(id_: str, state: AlertState, step: int, level: Level = "ERROR") -> Alert:
    return Alert(id_, "length_inflation", "length_inflation", "aggregator", "shared", level, state,
                 step, 5, "title", "text")  # fmt: skip


def test_transitions_become_one_finding_each_worst_first() -> None:
    found = findings(
        [
            alert("a", "open", 6, "WARN"),
            alert("b", "open", 7, "WARN"),
            alert("b", "escalated", 9),
            alert("a", "closed", 12, "INFO"),
        ]
    )
    b, a = found
    assert (b.alert.id, b.state, b.raised, b.escalated, b.closed) == ("b", "failing", 7, 9, None)
    assert (a.alert.id, a.state, a.raised, a.escalated, a.closed) == (
        "a",
        "suspicious",
        6,
        None,
        12,
    )


def test_findings_stand_by_incident_and_there_the_cause_comes_first() -> None:
    later = replace(alert("late", "open", 7), severity="failing", onset=30, step=31)
    cause = replace(alert("cause", "open", 9), role="generator", layer="movement", onset=4)
    alerts = [alert("sign", "open", 6, "WARN"), cause, later]
    book = Incidents()
    for one in alerts:
        book.update(one.step, [one])
    assert book.incidents[0].role == "generator"
    found = findings(alerts, book.incidents)
    assert [one.alert.id for one in found] == ["cause", "sign", "late"]
    assert found[0].incident is found[1].incident is not None


def test_the_baseline_is_there_only_when_it_is_full(healthy: JudgedRun, empty: JudgedRun) -> None:
    assert healthy.baseline == (0, 7)
    short = replace(healthy, config=Config(baseline=BaselineConfig(window=6)))
    assert short.baseline == (0, 5)
    long = replace(healthy, config=Config(baseline=BaselineConfig(window=100)))
    assert long.baseline is None
    assert empty.baseline is None


def test_curves(healthy: JudgedRun) -> None:
    curve = healthy.curve("aggregator", "length")
    assert list(curve) == list(range(40))
    assert healthy.curve("aggregator", "entropy") == {}
    assert list(healthy.validation) == list(range(0, 40, 5))
    assert healthy.reward[0] == 0.5


def test_accuracy_before_training_stands_at_step_0(healthy: JudgedRun) -> None:
    records = tuple(replace(one, step=one.step + 1) for one in healthy.records)
    first = replace(records[0], totals={**records[0].totals, "base_accuracy": 0.25})
    told = replace(healthy, records=(first, *records[1:]))
    assert list(told.validation.items())[:2] == [(0, 0.25), (1, first.totals["val_accuracy"])]


def test_an_unreadable_configuration_is_named(healthy: JudgedRun, tmp_path: Path) -> None:
    assert healthy.config_note == ""
    header = RunHeader("odd", VOTING, config={"baseline": {"windw": 3}})
    RunWriter(tmp_path / "odd", header).close()
    odd = load(tmp_path / "odd", "run1")
    assert odd.config == Config()
    assert "default configuration" in odd.config_note
    assert "windw" in odd.config_note
    assert load(tmp_path / "odd", "run1", Config(close_after=9)).config.close_after == 9


def test_thinning_keeps_spikes_gaps_and_both_ends() -> None:
    curve = {step: math.sin(step / 50) for step in range(5_000)}
    curve[1234], curve[4321] = 99.0, math.nan
    kept = thinned(curve)
    assert len(kept) <= 600
    assert kept[1234] == 99.0
    assert math.isnan(kept[4321])
    assert (min(kept), max(kept)) == (0, 4_999)
    assert all(kept[step] == curve[step] or math.isnan(kept[step]) for step in kept)


@given(st.integers(0, 2_000), st.integers(4, 700))
def test_thinning_never_exceeds_its_limit(count: int, limit: int) -> None:
    kept = thinned({step: float(step % 7) for step in range(count)}, limit)
    assert len(kept) <= limit or count <= limit
    assert list(kept) == sorted(kept)
