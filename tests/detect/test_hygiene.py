from __future__ import annotations

import pytest

from roledrift.config import Config
from roledrift.detect.alerts import ADVICE
from roledrift.detect.hygiene import RULES, SPOILS, Hygiene, Spoil
from roledrift.detect.panel import Panel
from roledrift.records import Stat, StepRecord, Verdict
from roledrift.workflow import VOTING
from tests.detect.healthy import Run

ZERO = "policy vs policy at the start of the iteration, T=1.0, 0 steps between"
TWO = "policy vs rollout engine, T=0.7 vs T=1.0, 0 steps between"


def judge(stats: dict[str, float], labels: dict[str, str] | None = None) -> list[Verdict]:
    detector = Hygiene(VOTING, Config())
    found = {name: Stat(64, value, high=value) for name, value in stats.items()}
    return [
        one
        for step in range(6)
        for one in detector.update(
            StepRecord(step, groups={"generator": found}, labels=labels or {})
        )
        if one.role == "generator"
    ]


@pytest.mark.parametrize(
    ("finding", "stats", "labels"),
    [
        ("duplicate_rows", {"duplicates": 0.02}, {}),
        ("logprob_mode_mismatch", {"rollout.refused": 1.0}, {"rollout": TWO}),
        ("stale_denominator", {"old.k3": 0.01}, {"old": ZERO}),
        ("adapter_not_served", {"rollout.k3": 0.09, "reference.k3": 0.1}, {}),
        ("no_updates", {"updates": 0.0, "advantage": 0.3}, {}),
        ("no_updates", {"update.k3": 0.0}, {}),
        ("no_updates", {"clip_fraction": 1.0}, {}),
        ("truncation", {"truncated": 0.2}, {}),
        ("signal_loss", {"zero_variance": 1.0}, {}),
    ],
)
def test_each_finding_is_told_once_it_persists(
    finding: str, stats: dict[str, float], labels: dict[str, str]
) -> None:
    verdicts = judge(stats, labels)
    assert [one.state for one in verdicts[:3]] == ["watch", "watch", "drift"]
    assert (verdicts[-1].finding, verdicts[-1].onset) == (finding, 0)
    assert "x of 3" not in verdicts[-1].reason
    assert finding in ADVICE


@pytest.mark.parametrize(
    ("stats", "labels"),
    [
        ({"duplicates": 0.0, "truncated": 0.02, "zero_variance": 0.9}, {}),
        ({"old.k3": 0.0}, {"old": ZERO}),
        ({"old.k3": 0.01}, {"old": ZERO.replace("0 steps", "0 to 2 steps")}),
        ({"rollout.k3": 0.001, "reference.k3": 0.1}, {}),
        ({"rollout.k3": 0.004, "reference.k3": 0.005}, {}),
        ({"updates": 3.0, "advantage": 0.3, "update.k3": 1e-5, "clip_fraction": 0.1}, {}),
    ],
)
def test_what_is_ordinary_is_ok(stats: dict[str, float], labels: dict[str, str]) -> None:
    assert {one.state for one in judge(stats, labels)} <= {"ok", "no verdict"}


def test_the_gravest_of_several_is_told_and_the_others_named() -> None:
    found = judge({"duplicates": 0.5, "truncated": 0.5})[-1]
    assert found.finding == "duplicate_rows"
    assert "also truncation" in found.reason


def test_nothing_recorded_is_no_verdict() -> None:
    assert judge({"length": 3.0})[-1].state == "no verdict"


def test_what_is_spoilt_is_known_by_name_or_prefix() -> None:
    assert SPOILS.keys() <= RULES.keys()
    assert Spoil(("old.",)).touches(frozenset({"old.k3"}))
    assert not Spoil(("old.",)).touches(frozenset({"update.k3"}))
    assert not Spoil(("length",)).touches(frozenset({"length_credit"}))
    assert Spoil(("",)).touches(frozenset({"anything"}))
    assert not Spoil(("",)).touches(frozenset())


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_runs_that_learn_raise_nothing(correlation: float) -> None:
    for seed in range(30):
        config = Config()
        panel = Panel(VOTING, config, detectors=[Hygiene(VOTING, config)], rewinds=False)
        assert [a for record in Run(seed, correlation).records() for a in panel.update(record)] == (
            []
        )
