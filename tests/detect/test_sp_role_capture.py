from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from roledrift.detect.sp_role_capture import SpRoleCapture

from roledrift.config import Config
from roledrift.judgement import Verdict
from roledrift.workflow import EVAL_OPT, VOTING, Workflow

STEPS = 60


def judge(records: Any, workflow: Workflow = EVAL_OPT, role: str = "evaluator") -> list[Verdict]:
    detector = SpRoleCapture(workflow, Config())
    return [one for record in records for one in detector.update(record) if one.role == role]


@pytest.fixture
def start(noise: Any) -> Any:
    """Healthy evaluator and generator: shapes well apart, a few per cent of noise."""
    rng = np.random.default_rng(5)

    def share(value: float) -> Any:
        return np.clip(value + 0.04 * rng.normal(size=STEPS), 0, 1)

    return {
        "generator": {
            "length": 18 * noise(rng, STEPS, sd=0.05),
            "bare_stamp": share(0.02),
            "boxed": share(0.97),
            "hedging": share(0.15),
        },
        "evaluator": {
            "length": 4 * noise(rng, STEPS, sd=0.08),
            "bare_stamp": share(0.91),
            "boxed": share(0.98),
            "hedging": share(0.02),
        },
    }


def test_a_healthy_run_is_quiet(run: Any, start: Any) -> None:
    for role in EVAL_OPT.role_names:
        verdicts = judge(run(start), role=role)
        assert [one.state for one in verdicts] == ["no verdict"] * 8 + ["ok"] * (STEPS - 8)


def test_an_evaluator_that_solves_again_is_found(run: Any, start: Any, ramp: Any) -> None:
    start["evaluator"]["length"] = ramp(4.0, 18.0, start=20, length=15, steps=STEPS)
    start["evaluator"]["bare_stamp"] = ramp(0.91, 0.003, start=20, length=15, steps=STEPS)
    verdicts = judge(run(start))
    found = verdicts[-1]
    assert found.state == "drift"
    assert found.finding == "sp_role_capture"
    assert found.value is not None
    assert found.value > 0.8
    assert found.onset is not None
    assert 20 <= found.onset <= 32
    assert "writes like generator" in found.reason
    assert "length 4" in found.reason
    assert "bare_stamp" in found.reason
    assert "boxed" not in found.reason, "both roles box: it separates nothing"
    assert "reward for length" in found.reason
    assert {one.state for one in judge(run(start), role="generator")} == {"no verdict", "ok"}


def test_length_alone_is_not_capture(run: Any, start: Any, ramp: Any) -> None:
    start["evaluator"]["length"] = ramp(4.0, 40.0, start=20, length=10, steps=STEPS)
    assert "drift" not in {one.state for one in judge(run(start))}


def test_all_roles_growing_is_not_capture(run: Any, start: Any, ramp: Any) -> None:
    for role, length in (("generator", 18.0), ("evaluator", 4.0)):
        start[role]["length"] = ramp(length, 2.5 * length, start=20, length=15, steps=STEPS)
    for role in EVAL_OPT.role_names:
        assert "drift" not in {one.state for one in judge(run(start), role=role)}


def test_the_role_that_moved_more_is_the_captured_one(run: Any, start: Any, ramp: Any) -> None:
    start["generator"]["length"] = ramp(18.0, 4.0, start=20, length=15, steps=STEPS)
    start["generator"]["bare_stamp"] = ramp(0.02, 0.9, start=20, length=15, steps=STEPS)
    assert "drift" not in {one.state for one in judge(run(start))}
    assert judge(run(start), role="generator")[-1].state == "drift"


def test_a_single_odd_step_is_not_capture(run: Any, start: Any) -> None:
    start["evaluator"]["length"] = [18.0 if t == 30 else 4.0 for t in range(STEPS)]
    start["evaluator"]["bare_stamp"] = [0.0 if t == 30 else 0.9 for t in range(STEPS)]
    assert "drift" not in {one.state for one in judge(run(start))}


def test_ninety_per_cent_of_the_gradient_alone_is_healthy(run: Any, start: Any, gram: Any) -> None:
    unequal = gram("shared", EVAL_OPT.role_names, 0.1, (3.0, 0.3))
    records = [replace(one, gradients=(unequal,)) for one in run(start)]
    for role in EVAL_OPT.role_names:
        assert {one.state for one in judge(records, role=role)} == {"no verdict", "ok"}


def test_the_share_of_the_gradient_is_named(run: Any, start: Any, ramp: Any, gram: Any) -> None:
    start["evaluator"]["length"] = ramp(4.0, 18.0, start=20, length=15, steps=STEPS)
    start["evaluator"]["bare_stamp"] = ramp(0.91, 0.003, start=20, length=15, steps=STEPS)
    half = gram("shared", ("generator", "evaluator"), 0.0, (3.0, 1.0))
    records = [replace(one, gradients=(half,)) for one in run(start)]
    assert "generator holds 0.90 of the shared gradient" in judge(records)[-1].reason


def test_it_says_what_is_missing(run: Any, start: Any) -> None:
    isolated = judge(run(start), EVAL_OPT.routed("isolated"))[-1]
    assert "does not apply: isolated" in isolated.reason
    lengths = {role: {"length": stats["length"]} for role, stats in start.items()}
    assert judge(run(lengths))[-1].needs[0].startswith("texts")
    texts = {role: {"boxed": stats["boxed"]} for role, stats in start.items()}
    assert judge(run(texts))[-1].needs == ("length",)
    assert judge(run(start)[:3])[-1].needs == ("5 more steps of baseline",)
    same = dict.fromkeys(start, start["generator"])
    assert "write alike" in judge(run(same))[-1].reason


def test_texts_that_come_every_third_step_are_enough(run: Any, start: Any, ramp: Any) -> None:
    start["evaluator"]["length"] = ramp(4.0, 18.0, start=30, length=5, steps=STEPS)
    start["evaluator"]["bare_stamp"] = ramp(0.91, 0.003, start=30, length=5, steps=STEPS)
    for stats in start.values():
        for name in ("bare_stamp", "boxed", "hedging"):
            stats[name] = [x if t % 3 == 0 else None for t, x in enumerate(stats[name])]
    assert judge(run(start))[-1].state == "drift"


def test_voting_names_the_generator_as_the_attractor(run: Any, start: Any, ramp: Any) -> None:
    renamed = {"generator": start["generator"], "aggregator": start["evaluator"]}
    renamed["aggregator"]["length"] = ramp(5.0, 18.0, start=20, length=15, steps=STEPS)
    renamed["aggregator"]["bare_stamp"] = ramp(0.85, 0.02, start=20, length=15, steps=STEPS)
    assert "writes like generator" in judge(run(renamed), VOTING, "aggregator")[-1].reason
