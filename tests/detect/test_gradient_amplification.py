from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from roledrift.config import Config
from roledrift.detect.gradient_amplification import GradientAmplification, slot_coherence
from roledrift.records import GramRecord, StepRecord, Verdict
from roledrift.workflow import SINGLE, VOTING, Role, Workflow

ISOLATED = VOTING.routed("isolated")
SLOTS = ("generator/0", "generator/1", "generator/2")


def judge(records: Any, workflow: Workflow = ISOLATED, role: str = "generator") -> list[Verdict]:
    detector = GradientAmplification(workflow, Config())
    return [one for record in records for one in detector.update(record) if one.role == role]


@pytest.fixture
def collapse(run: Any, ramp: Any, noise: Any) -> list[StepRecord]:
    """Generator k3 .0005 -> .05 within 20 steps from step 20, aggregator flat, with outliers."""
    rng = np.random.default_rng(7)
    loud = {"sd": 0.5, "outliers": 0.03, "up_to": 1e5}
    return run(  # type: ignore[no-any-return]
        {
            "generator": {
                "update.k3": ramp(5e-4, 0.05, start=20, length=20, steps=70)
                * noise(rng, 70, **loud),
                "ppl": ramp(1.2, 1.43, start=20, length=40, steps=70),
            },
            "aggregator": {"update.k3": 2e-3 * noise(rng, 70, **loud)},
        }
    )


def test_without_slot_gradients_it_is_role_drift(collapse: list[StepRecord]) -> None:
    verdicts = judge(collapse)
    first = next(step for step, one in enumerate(verdicts) if one.state == "drift")
    assert 24 <= first <= 45
    found = verdicts[-1]
    assert found.state == "drift"
    assert found.finding == "role_drift"
    assert found.statistic == "update.k3"
    assert found.onset is not None
    assert 20 <= found.onset <= 40
    assert "not measured" in found.reason
    assert "aggregator" in found.reason
    assert "perplexity 1.2 -> 1.43" in found.reason


@pytest.mark.parametrize(
    ("cosine", "finding"), [(0.6, "gradient_amplification"), (0.03, "role_drift")]
)
def test_the_name_needs_coherent_slots(
    collapse: list[StepRecord], gram: Any, cosine: float, finding: str
) -> None:
    with_grams = [
        replace(record, gradients=(gram("generator", SLOTS, cosine),)) for record in collapse
    ]
    found = judge(with_grams)[-1]
    assert found.finding == finding
    assert f"kappa {math.sqrt(1 + 2 * cosine):.2f}" in found.reason


def test_two_gradient_measurements_are_not_enough(collapse: list[StepRecord], gram: Any) -> None:
    sparse = [
        replace(one, gradients=(gram("generator", SLOTS, 0.9),)) if one.step in (50, 60) else one
        for one in collapse
    ]
    found = judge(sparse)[-1]
    assert found.finding == "role_drift"
    assert "2 of 3" in found.reason


def test_when_both_roles_move_multiplicity_is_not_the_cause(run: Any, ramp: Any) -> None:
    def moving(before: float, after: float) -> Any:
        return {"update.k3": ramp(before, after, start=20, length=20, steps=70)}

    for other in ((5e-4, 0.05), (2e-4, 5e-3), (2e-3, 0.2)):
        verdicts = judge(run({"generator": moving(5e-4, 0.05), "aggregator": moving(*other)}))
        assert "drift" not in {one.state for one in verdicts}
        assert verdicts[-1].state == "watch"
        assert "aggregator moves too" in verdicts[-1].reason


def test_growth_below_the_floor_is_no_drift(run: Any, ramp: Any) -> None:
    verdicts = judge(
        run(
            {
                "generator": {"update.k3": ramp(1e-5, 2e-3, start=20, length=10, steps=60)},
                "aggregator": {"update.k3": [1e-5] * 60},
            }
        )
    )
    assert {one.state for one in verdicts} == {"no verdict", "ok"}


def test_single_outliers_of_six_orders_are_no_drift(run: Any) -> None:
    k3 = [5e-4 if t % 9 else 2471.0 for t in range(90)]
    verdicts = judge(
        run({"generator": {"update.k3": k3}, "aggregator": {"update.k3": [1e-3] * 90}})
    )
    assert {one.state for one in verdicts} == {"no verdict", "ok"}


def test_it_applies_to_slots_with_a_policy_of_their_own(run: Any) -> None:
    records = run(
        {"generator": {"update.k3": [1e-3] * 12}, "aggregator": {"update.k3": [1e-3] * 12}}
    )
    shared = judge(records, VOTING)[-1]
    assert shared.state == "no verdict"
    assert "shared with aggregator" in shared.reason
    single = judge(records, SINGLE)[-1]
    assert "does not apply: the role has one slot" in single.reason
    alone = Workflow("alone", (Role("generator", slots=3),), ("generator",))
    assert "no role without multiplicity" in judge(records, alone)[-1].reason
    assert judge(records)[-1].state == "ok"


def test_it_says_what_is_missing(run: Any) -> None:
    assert judge(run({"generator": {"length": [5.0] * 3}}))[-1].needs[0].startswith("update.k3")
    unanswered = judge(run({"generator": {"update.k3": [1e-3] * 12}}))[-1]
    assert unanswered.needs == ("update.k3 of aggregator",)


def test_a_ratio_that_is_one_by_construction_measures_nothing(run: Any) -> None:
    flat = {role: {"old.k3": [0.0] * 20} for role in ISOLATED.role_names}
    found = judge(run(flat))[-1]
    assert found.state == "no verdict"
    assert found.needs[0].startswith("update.k3")


@pytest.mark.parametrize(("source", "size"), [("old.k3", 1.0), ("rollout.chi2", 2.0)])
def test_other_measures_of_movement_are_used_and_named(
    run: Any, ramp: Any, source: str, size: float
) -> None:
    moving = [size * x for x in ramp(5e-4, 0.05, start=20, length=10, steps=60)]
    records = run({"generator": {source: moving}, "aggregator": {source: [size * 5e-4] * 60}})
    found = judge(records)[-1]
    assert found.state == "drift"
    assert found.statistic == source
    assert source in found.reason


def test_coherence_against_explicit_vectors() -> None:
    vectors = np.random.default_rng(3).normal(size=(3, 50)) + 0.5
    products = tuple(tuple(row) for row in (vectors @ vectors.T).tolist())
    record = StepRecord(0, gradients=(GramRecord("generator", SLOTS, products),))
    rms = math.sqrt(np.mean(np.square(np.linalg.norm(vectors, axis=1))))
    expected = np.linalg.norm(vectors.sum(axis=0)) / (math.sqrt(3) * rms)
    assert slot_coherence(record, "generator", "generator") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("cosine", "norms", "expected"),
    [(0.0, (1.0, 5.0, 0.1), 1.0), (1.0, (2.0, 2.0, 2.0), math.sqrt(3)), (-0.5, (1.0,) * 3, 0.0)],
)
def test_coherence_at_its_landmarks(gram: Any, cosine: float, norms: Any, expected: float) -> None:
    record = StepRecord(0, gradients=(gram("generator", SLOTS, cosine, norms),))
    assert slot_coherence(record, "generator", "generator") == pytest.approx(expected, abs=1e-6)


def test_coherence_needs_two_slots_of_this_policy(gram: Any) -> None:
    one = StepRecord(0, gradients=(gram("generator", ("generator/0", "aggregator/0"), 0.5),))
    other = StepRecord(0, gradients=(gram("aggregator", SLOTS, 0.5),))
    nothing = StepRecord(0, gradients=(gram("generator", SLOTS, 0.5, (0.0,) * 3),))
    for record in (one, other, nothing, StepRecord(0)):
        assert slot_coherence(record, "generator", "generator") is None
