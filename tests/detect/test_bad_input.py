"""Bad input: a verdict withheld with its reason, never an exception, never green."""

from __future__ import annotations

import math
import random

import pytest

from roledrift.detect.detectors import (
    diversity_collapse,
    entropy_collapse,
    lazy_role,
    sp_role_capture,
)
from roledrift.records import Stat, StepRecord
from roledrift.workflow import EVAL_OPT, ORCH_WORKERS, VOTING, Workflow
from tests.detect.judging import judge, records

CARDS = (sp_role_capture.CARD, entropy_collapse.CARD, diversity_collapse.CARD, lazy_role.CARD)
STATISTICS = (
    *("entropy", "zero_variance", "grad_norm", "wrong_agreement", "wrong_jaccard", "openers"),
    *("verdict_correct", "copied", "words", "length", "reward", "reward_bias", "length_credit"),
)
VALUES = (0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, math.nan, math.inf, -math.inf)


def shared(workflow: Workflow) -> Workflow:
    return Workflow(workflow.name, workflow.roles, ("shared",) * len(workflow.roles))


def _stat(rng: random.Random, name: str) -> Stat:
    size = rng.choice((64, 64, 64, 3, 0))
    shares = tuple(rng.choice((*VALUES, 0.1, 0.2)) for _ in range(size))
    return Stat(
        rng.choice((0, 1, 16, 64, math.nan)),
        rng.choice(VALUES),
        sd=rng.choice((None, 0.0, 0.3, math.nan)),
        shares=shares if name == "words" else None,
    )


@pytest.mark.parametrize("seed", range(40))
def test_any_input_gives_verdicts_or_none(seed: int) -> None:
    rng = random.Random(seed)
    workflow = shared(rng.choice((VOTING, EVAL_OPT, ORCH_WORKERS)))
    constant = rng.random() < 0.3
    kept = {(r, n): _stat(rng, n) for r in workflow.role_names for n in STATISTICS}
    run = []
    for step in range(1, 60):
        groups: dict[str, dict[str, Stat]] = {}
        for role in workflow.role_names:
            if rng.random() < 0.1:
                continue
            groups[role] = {
                name: kept[role, name] if constant else _stat(rng, name)
                for name in STATISTICS
                if rng.random() < 0.8
            }
        totals = {"accuracy": rng.choice(VALUES)} if rng.random() < 0.8 else {}
        run.append(StepRecord(step, groups=groups, totals=totals))
    for card in CARDS:
        _, last = judge(card, run, workflow)  # an exception is a fault, and fails here
        for verdict in last.values():
            assert verdict.reason
            assert verdict.state != "drift" or verdict.severity is not None


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_entropy_that_is_none_is_not_judged(value: float) -> None:
    run = records({"generator": {"entropy": [value] * 40}}, {"accuracy": [0.5] * 40})
    alerts, last = judge(entropy_collapse.CARD, run, VOTING)
    assert not alerts
    assert last["generator"].state == "no verdict"
    assert "entropy" in last["generator"].reason


def test_a_role_that_vanishes_is_not_called_fine() -> None:
    stats = {"entropy": [0.2] * 20 + [None] * 20}
    run = records({"generator": stats, "aggregator": {"entropy": [0.2] * 40}})
    _, last = judge(entropy_collapse.CARD, run, VOTING)
    assert last["aggregator"].state == "ok"
    assert last["generator"].state == "no verdict"
    assert last["generator"].reason == "no entropy measured since step 20"
    copied = [0.5] * 20 + [None] * 20
    run = records({"synthesizer": {"copied": copied}, "worker": {"entropy": [0.2] * 40}})
    _, last = judge(lazy_role.CARD, run, ORCH_WORKERS)
    assert last["synthesizer"].state == "no verdict"


def test_an_open_finding_outlasts_a_gap() -> None:
    stats = {"verdict_correct": [1.0] * 20 + [None] * 20}
    run = records(
        {"evaluator": stats, "generator": {"entropy": [0.2] * 40}}, {"accuracy": [0.5] * 40}
    )
    alerts, last = judge(lazy_role.CARD, run, EVAL_OPT)
    assert [one.state for one in alerts] == ["open"]
    assert last["evaluator"].state == "no verdict"
