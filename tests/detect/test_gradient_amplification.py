from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from roledrift.config import Config
from roledrift.detect.gradient_amplification import (
    GradientAmplification,
    lower_bound,
    slot_coherence,
)
from roledrift.records import GramRecord, Stat, StepRecord, Verdict
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
    assert "slot gradients not measured" in found.reason
    assert "aggregator" in found.reason
    assert "perplexity 1.2 -> 1.43" in found.reason


def halved(same: float, apart: float) -> GramRecord:
    """Three slots on two halves: unit gradients with these cosines."""
    cosine = np.full((3, 2, 3, 2), apart)
    for h in (0, 1):
        cosine[:, h, :, h] = same
    flat = cosine.reshape(6, 6)
    np.fill_diagonal(flat, 1.0)
    summed = flat.reshape(3, 2, 3, 2).sum((1, 3))
    rows, parts = (tuple(tuple(row) for row in one.tolist()) for one in (summed, flat))
    return GramRecord("generator", SLOTS, rows, halves={"generator": parts})


def with_evidence(
    records: list[StepRecord],
    *,
    excess: float = 0.3,
    common: float = 0.0,
    noise: float = 0.05,
    updates: tuple[int, int] | None = (3, 1),
    every: int = 2,
) -> list[StepRecord]:
    """Records with counted updates and, every second one, slot gradients split by problem."""
    rng = np.random.default_rng(2)
    found = []
    for record in records:
        groups = {role: dict(its) for role, its in record.groups.items()}
        if updates is not None:
            for role, count in zip(("generator", "aggregator"), updates, strict=True):
                groups[role]["updates"] = Stat(1, count, high=count)
        apart = common + noise * rng.normal()
        gram = halved(common + excess + noise * rng.normal(), apart)
        gradients = () if record.step % every else (gram,)
        found.append(replace(record, groups=groups, gradients=gradients))
    return found


def test_the_name_is_given_for_all_of_the_evidence(collapse: list[StepRecord]) -> None:
    found = judge(with_evidence(collapse))[-1]
    assert found.finding == "gradient_amplification"
    assert found.needs == ()
    assert "agree on a problem beyond" in found.reason
    assert "aggregator is flat" in found.reason
    assert "3 optimizer steps against 1" in found.reason


@pytest.mark.parametrize(
    ("changed", "said", "need"),
    [
        ({"excess": 0.0}, "do not agree on a problem", None),
        # All problems ask for the same: slots agree, and the control does too.
        ({"excess": 0.0, "common": 0.6}, "do not agree on a problem", None),
        ({"excess": 0.12, "noise": 0.9}, "do not agree on a problem", None),
        ({"updates": None}, "not counted", "optimizer steps per iteration"),
        ({"updates": (12, 1)}, "12 optimizer steps against 1 would explain", None),
        ({"every": 90}, "not measured", "gradients of generator's slots"),
        ({"every": 14}, "of 4 records", "split by problem"),
    ],
    ids=["unrelated", "common goal", "noise", "no updates", "steps", "no grams", "few grams"],
)
def test_without_or_against_a_part_of_it_it_is_role_drift(
    collapse: list[StepRecord], changed: dict[str, Any], said: str, need: str | None
) -> None:
    found = judge(with_evidence(collapse, **changed))[-1]
    assert (found.state, found.finding) == ("drift", "role_drift")
    assert said in found.reason
    assert any(need in one for one in found.needs) if need else found.needs == ()
    assert ("not gradient_amplification" in found.reason) == (need is None)


def test_coherent_slots_without_the_control_earn_nothing(
    collapse: list[StepRecord], gram: Any
) -> None:
    coherent = [replace(one, gradients=(gram("generator", SLOTS, 0.6),)) for one in collapse]
    found = judge(coherent)[-1]
    assert found.finding == "role_drift"
    assert f"kappa {math.sqrt(1 + 2 * 0.6):.2f}" in found.reason
    assert any("split by problem" in need for need in found.needs)


def test_a_foreign_log_is_judged_by_its_metrics_alone(run: Any, ramp: Any) -> None:
    records = run(
        {
            "generator": {
                "rollout.chi2": ramp(1e-3, 0.1, start=20, length=20, steps=70),
                "ppl": ramp(1.2, 1.8, start=20, length=40, steps=70),
            },
            "aggregator": {"rollout.chi2": [1e-3] * 70, "ppl": [1.1] * 70},
        }
    )
    found = judge(records)[-1]
    assert found.finding == "role_drift"
    assert "by its metrics alone like gradient_amplification" in found.reason
    assert "rollout.chi2 x100 (aggregator x1), ppl x1.5 (aggregator x1)" in found.reason


def test_noisy_credit_never_earns_the_name(run: Any, noise: Any) -> None:
    """Random rewards: the policy walks, slots agree on nothing; ten runs."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        walk = 5e-4 * np.exp(np.minimum(np.arange(80) / 10, 4.5)) * noise(rng, 80, sd=0.5)
        flat = 1e-3 * noise(rng, 80, sd=0.5)
        records = run({"generator": {"update.k3": walk}, "aggregator": {"update.k3": flat}})
        found = judge(with_evidence(records, excess=0.0, noise=0.2))
        assert {one.finding for one in found} <= {"", "role_drift"}
        assert found[-1].finding == "role_drift"


def test_when_all_roles_move_multiplicity_is_not_the_cause(run: Any, ramp: Any) -> None:
    def moving(before: float, after: float) -> Any:
        return {"update.k3": ramp(before, after, start=20, length=20, steps=70)}

    for other in ((5e-4, 0.05), (2e-4, 6e-3), (2e-3, 0.2)):
        records = run({"generator": moving(5e-4, 0.05), "aggregator": moving(*other)})
        verdicts = judge(with_evidence(records))
        assert "gradient_amplification" not in {one.finding for one in verdicts}
        assert verdicts[-1].state == "watch"
        assert "aggregator moves too, see policy_drift" in verdicts[-1].reason


def test_the_bound_is_student_s() -> None:
    # Quantiles of Student's t from tables at 0.05 * 4 / (n (n + 1)): 0.01 (n 4), 0.001 (n 14).
    for n, t in ((4, 4.541), (14, 3.852)):
        values = [float(x) for x in range(n)]
        sd = float(np.std(values, ddof=1))
        exact = 0.05 * 4 / (n * (n + 1))
        assert exact == pytest.approx({4: 0.01, 14: 0.00095}[n], rel=0.01)
        assert lower_bound(values, 4) == pytest.approx(
            np.mean(values) - t * sd / math.sqrt(n), abs=0.03 * t * sd / math.sqrt(n)
        )


def test_the_bound_is_rarely_wrong_however_often_one_looks() -> None:
    wrong = 0
    for seed in range(400):
        values = np.random.default_rng(seed).normal(size=40).tolist()
        wrong += any(lower_bound(values[:n], 4) > 0 for n in range(4, 41))
    assert wrong <= 0.05 * 400


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
