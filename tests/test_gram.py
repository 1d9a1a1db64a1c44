"""What follows from a Gram matrix equals what the gradients themselves say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift import gram
from roledrift.errors import ConfigError
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
    assert gram.norms(record) == pytest.approx(lengths)
    assert gram.total_norm(record) == pytest.approx(np.linalg.norm(total))
    unit = g / lengths[:, None]
    assert gram.cosines(record) == pytest.approx(unit @ unit.T)
    shares = gram.mass_shares(record)
    assert shares == pytest.approx(lengths**2 / (lengths**2).sum())
    assert shares.sum() == pytest.approx(1)
    slots = LABELS[:3]
    joint = np.linalg.norm(g[:3].sum(0))
    rms = math.sqrt((lengths[:3] ** 2).mean())
    assert gram.coherence(record, slots) == pytest.approx(joint / math.sqrt(3) / rms)


@given(seed=st.integers(0, 10_000))
def test_slots_add_up_to_roles_exactly(seed: int) -> None:
    g = np.random.default_rng(seed).normal(size=(4, 9))
    coarse = gram.by_role(record_of(g))
    expected = record_of(np.stack([g[:3].sum(0), g[3]]), ("generator", "aggregator"))
    assert coarse.labels == expected.labels
    assert np.allclose(gram.matrix(coarse), gram.matrix(expected), atol=1e-12)
    assert gram.total_norm(coarse) == pytest.approx(gram.total_norm(record_of(g)))


@pytest.mark.parametrize(
    ("gradients", "kappa"),
    [
        (np.eye(3), 1.0),
        (np.ones((3, 1)), math.sqrt(3)),
        (np.array([[1.0], [1.0], [-2.0]]), 0.0),
    ],
)
def test_landmarks(gradients: np.ndarray, kappa: float) -> None:
    record = record_of(gradients, LABELS[:3])
    assert gram.coherence(record) == pytest.approx(kappa)


def test_zero_gradients_are_not_numbers() -> None:
    record = record_of(np.zeros((4, 2)))
    assert gram.norms(record).tolist() == [0, 0, 0, 0]
    assert np.isnan(gram.cosines(record)).all()
    assert np.isnan(gram.mass_shares(record)).all()
    assert math.isnan(gram.coherence(record))


def test_labels() -> None:
    record = record_of(np.eye(4))
    assert gram.slots_of(record) == {"generator": LABELS[:3], "aggregator": ("aggregator",)}
    with pytest.raises(ConfigError, match="critic"):
        gram.matrix(record, ["critic"])
