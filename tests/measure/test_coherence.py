"""What follows from a Gram matrix equals what the gradients themselves say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.errors import ConfigError
from roledrift.measure import coherence
from roledrift.records import GramRecord

LABELS = ("generator/0", "generator/1", "generator/2", "aggregator")


def record_of(gradients_GP: np.ndarray, labels: tuple[str, ...] = LABELS) -> GramRecord:
    products = gradients_GP @ gradients_GP.T
    return GramRecord("shared", labels, tuple(tuple(row) for row in products.tolist()))


@given(seed=st.integers(0, 10_000))
def test_against_the_gradients(seed: int) -> None:
    g = np.random.default_rng(seed).normal(size=(4, 9))
    record, total = record_of(g), g.sum(0)
    lengths = np.linalg.norm(g, axis=1)
    assert coherence.norms(record) == pytest.approx(lengths)
    assert coherence.total_norm(record) == pytest.approx(np.linalg.norm(total))
    unit = g / lengths[:, None]
    assert coherence.cosines(record) == pytest.approx(unit @ unit.T)
    shares = coherence.mass_shares(record)
    assert shares == pytest.approx(lengths**2 / (lengths**2).sum())
    projected = coherence.projection_shares(record)
    assert projected == pytest.approx(g @ total / (total @ total))
    assert (shares.sum(), projected.sum()) == pytest.approx((1, 1))
    slots = LABELS[:3]
    joint = np.linalg.norm(g[:3].sum(0))
    rms = math.sqrt((lengths[:3] ** 2).mean())
    assert coherence.coherence(record, slots) == pytest.approx(joint / math.sqrt(3) / rms)
    assert coherence.amplification(record, slots) == pytest.approx(joint / lengths[:3].mean())


@given(seed=st.integers(0, 10_000))
def test_slots_add_up_to_roles_exactly(seed: int) -> None:
    g = np.random.default_rng(seed).normal(size=(4, 9))
    coarse = coherence.by_role(record_of(g))
    expected = record_of(np.stack([g[:3].sum(0), g[3]]), ("generator", "aggregator"))
    assert coarse.labels == expected.labels
    assert np.allclose(coherence.matrix(coarse), coherence.matrix(expected), atol=1e-12)
    assert coherence.total_norm(coarse) == pytest.approx(coherence.total_norm(record_of(g)))


@pytest.mark.parametrize(
    ("gradients", "kappa", "times"),
    [
        (np.eye(3), 1.0, math.sqrt(3)),
        (np.ones((3, 1)), math.sqrt(3), 3.0),
        (np.array([[1.0], [1.0], [-2.0]]), 0.0, 0.0),
    ],
)
def test_landmarks(gradients: np.ndarray, kappa: float, times: float) -> None:
    record = record_of(gradients, LABELS[:3])
    assert coherence.coherence(record) == pytest.approx(kappa)
    assert coherence.amplification(record) == pytest.approx(times)


def test_leakage() -> None:
    g = np.diag([0.0, 0.0, 1.0, 3.0])
    assert coherence.leakage(record_of(g), "aggregator") == pytest.approx(0.1)
    assert coherence.leakage(record_of(g), "generator") == pytest.approx(0.9)


def test_zero_gradients_are_not_numbers() -> None:
    record = record_of(np.zeros((4, 2)))
    assert coherence.norms(record).tolist() == [0, 0, 0, 0]
    assert np.isnan(coherence.cosines(record)).all()
    assert np.isnan(coherence.mass_shares(record)).all()
    assert math.isnan(coherence.coherence(record))
    assert math.isnan(coherence.amplification(record))
    assert math.isnan(coherence.leakage(record, "generator"))


def test_labels() -> None:
    record = record_of(np.eye(4))
    assert coherence.slots_of(record, "generator") == LABELS[:3]
    assert coherence.slots_of(record, "aggregator") == ("aggregator",)
    with pytest.raises(ConfigError, match="critic"):
        coherence.matrix(record, ["critic"])


def halved(gradients_SHP: np.ndarray) -> GramRecord:
    """Slots by halves by entries."""
    flat = gradients_SHP.reshape(-1, gradients_SHP.shape[-1])
    rows = tuple(tuple(row) for row in (flat @ flat.T).tolist())
    return GramRecord("own", ("generator/0",), ((1.0,),), halves={"generator": rows})


def test_the_control_by_problem_is_the_mean_of_pairs() -> None:
    g = np.random.default_rng(3).normal(size=(3, 2, 7))
    unit = g / np.linalg.norm(g, axis=-1, keepdims=True)
    pairs = [(a, b) for a in range(3) for b in range(3) if a < b]
    same = [unit[a, h] @ unit[b, h] for a, b in pairs for h in (0, 1)]
    apart = [unit[a, h] @ unit[b, 1 - h] for a, b in pairs for h in (0, 1)]
    found = coherence.by_problem(halved(g), "generator")
    assert found is not None
    assert (found.same, found.apart) == pytest.approx((np.mean(same), np.mean(apart)))
    assert found.alone == pytest.approx(np.mean([unit[a, 0] @ unit[a, 1] for a in range(3)]))
    assert found.excess == pytest.approx(np.mean(same) - np.mean(apart))


def test_excess_is_one_for_copies_on_a_prompt_and_nothing_for_a_common_goal() -> None:
    copies = np.broadcast_to(np.eye(2), (3, 2, 2))
    found = coherence.by_problem(halved(copies), "generator")
    assert found is not None
    assert (found.same, found.apart, found.alone) == (1, 0, 0)
    goal = np.ones((3, 2, 4))
    alike = coherence.by_problem(halved(goal), "generator")
    assert alike is not None
    assert (alike.same, alike.excess) == pytest.approx((1, 0))


def test_no_control_without_parts() -> None:
    assert coherence.by_problem(record_of(np.eye(4)), "generator") is None
    silent = np.ones((3, 2, 4))
    silent[1, 0] = 0
    assert coherence.by_problem(halved(silent), "generator") is None
    assert coherence.by_problem(halved(silent * np.nan), "generator") is None
