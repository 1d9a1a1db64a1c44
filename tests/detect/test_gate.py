from __future__ import annotations

from dataclasses import replace
from typing import Any

from roledrift.config import Config
from roledrift.detect.gate import gated, reads_of, suspects
from roledrift.detect.length_inflation import LengthInflation
from roledrift.detect.panel import Panel
from roledrift.records import Stat, StepRecord, Verdict
from roledrift.workflow import VOTING


def finding(name: str, role: str = "aggregator") -> dict[str, Verdict]:
    return {role: Verdict("hygiene", role, "drift", finding=name, reason="20 % of the rows")}


OK = Verdict("length_inflation", "aggregator", "ok")
READS = frozenset({"length"})


def test_a_verdict_on_suspect_input_is_withheld_with_the_reason() -> None:
    withheld = gated(OK, READS, finding("duplicate_rows"))
    assert withheld.state == "no verdict"
    assert withheld.reason == "withheld: duplicate_rows of aggregator, 20 % of the rows"


def test_only_where_role_and_statistics_are_concerned() -> None:
    assert gated(OK, READS, finding("duplicate_rows", "generator")) is OK
    assert gated(OK, READS, finding("stale_denominator")) is OK
    assert gated(OK, frozenset(), finding("duplicate_rows")) is OK
    assert gated(OK, READS, {}) is OK
    everyone = replace(OK, role="*")
    assert gated(everyone, READS, finding("duplicate_rows")).state == "no verdict"


def test_lengths_that_are_cut_can_hide_a_drift_but_make_none() -> None:
    drift = replace(OK, state="drift")
    assert gated(drift, READS, finding("truncation")) is drift
    assert gated(OK, READS, finding("truncation")).state == "no verdict"


def test_hygiene_itself_is_never_withheld() -> None:
    (own,) = finding("duplicate_rows").values()
    assert gated(own, READS, finding("duplicate_rows")) is own
    assert suspects([OK, own]) == {"aggregator": own}


def test_a_detector_says_what_it_reads() -> None:
    assert reads_of(LengthInflation(VOTING, Config())) == READS
    assert reads_of(object()) == frozenset()  # type: ignore[arg-type]


def test_withheld_verdicts_neither_open_nor_close_an_alert(run: Any, ramp: Any) -> None:
    """The aggregator inflates; its rows are twice there from the first step, or from step 40."""
    lengths = ramp(5.0, 20.0, start=20, length=5, steps=45) + [5.0] * 30

    def told(first: int) -> list[tuple[str, str]]:
        panel = Panel(VOTING)
        found = []
        for one in run({"aggregator": {"length": lengths}}):
            share = 0.5 if one.step >= first else 0.0
            stats = {**one.groups["aggregator"], "duplicates": Stat(64, share)}
            for alert in panel.update(StepRecord(one.step, groups={"aggregator": stats})):
                found.append((alert.detector, alert.state))
        return found

    assert told(99) == [("length_inflation", "open"), ("length_inflation", "closed")]
    assert told(0) == [("hygiene", "open")]
    assert told(40) == [("length_inflation", "open"), ("hygiene", "open")]
