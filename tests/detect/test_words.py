"""How far a role's words have gone, against explicit mixtures."""

from __future__ import annotations

import numpy as np
import pytest
from roledrift.detect.words import Vocabulary, Way

from roledrift.config import BaselineConfig
from roledrift.records import Stat, StepRecord

K = 64


def profile(seed: int, spread: float = 0.2) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(K, spread))


def record(step: int, **shares: np.ndarray) -> StepRecord:
    return StepRecord(
        step,
        groups={
            role: {"words": Stat(64, 10.0, shares=tuple(its.tolist()))}
            for role, its in shares.items()
        },
    )


def started(a: np.ndarray, b: np.ndarray, *, noise: float = 0.0) -> tuple[Vocabulary, Vocabulary]:
    rng = np.random.default_rng(0)
    mine, its = Vocabulary(BaselineConfig()), Vocabulary(BaselineConfig())
    for step in range(12):
        jitter = [np.abs(one + noise * rng.normal(size=K) * one) for one in (a, b)]
        one = record(step, a=jitter[0], b=jitter[1])
        mine.see(one, "a")
        its.see(one, "b")
    return mine, its


def way(mine: Vocabulary, its: Vocabulary, now: np.ndarray) -> Way:
    mine.see(record(20, a=now), "a")
    found = mine.way(its)
    assert found is not None
    return found


@pytest.mark.parametrize("q", [0.0, 0.3, 1.0])
def test_a_mixture_of_texts_has_gone_its_share_of_the_way(q: float) -> None:
    a, b = profile(1), profile(2)
    mine, its = started(a, b)
    found = way(mine, its, (1 - q) * a + q * b)
    assert found.share == pytest.approx(q, abs=1e-9)
    assert found.gone == pytest.approx(q, abs=1e-9)
    if q:
        assert found.direct == pytest.approx(1)


def test_against_the_formula() -> None:
    a, b, now = profile(1), profile(2), profile(3)
    mine, its = started(a, b)
    found = way(mine, its, now)
    top = sum((now[k] - a[k]) * (b[k] - a[k]) / (a[k] + b[k] + 1 / K) for k in range(K))
    far = sum((now[k] - a[k]) ** 2 / (a[k] + b[k] + 1 / K) for k in range(K))
    whole = sum((b[k] - a[k]) ** 2 / (a[k] + b[k] + 1 / K) for k in range(K))
    assert found.share == pytest.approx(top / whole)
    assert found.gone == pytest.approx((far / whole) ** 0.5)
    assert abs(found.share) <= found.gone


def test_words_of_its_own_are_not_toward_another() -> None:
    a, b = np.zeros(K), np.zeros(K)
    a[:8], b[8:16] = 1 / 8, 1 / 8
    elsewhere = np.zeros(K)
    elsewhere[20:28] = 1 / 8
    mine, its = started(a, b, noise=0.1)
    found = way(mine, its, 0.3 * a + 0.7 * elsewhere)
    assert found.gone > 0.5
    # Half of the way is away from its own words, wherever that leads.
    assert found.share < 0.5
    assert found.direct < 0.7
    assert found.left > 3


def test_roles_that_write_alike_are_not_told_apart() -> None:
    rng, a = np.random.default_rng(4), profile(1, 5.0)
    mine, its = Vocabulary(BaselineConfig()), Vocabulary(BaselineConfig())
    for step in range(12):
        noisy = [rng.dirichlet(a * 200) for _ in range(2)]
        mine.see(record(step, a=noisy[0]), "a")
        its.see(record(step, b=noisy[1]), "b")
    assert not mine.tells_apart(its)
    mine.see(record(20, a=a), "a")
    assert mine.way(its) is None


def test_before_the_warm_up_is_full_nothing_is_said() -> None:
    mine, its = Vocabulary(BaselineConfig()), Vocabulary(BaselineConfig())
    assert not mine.seen
    mine.see(record(0, a=profile(1)), "a")
    assert mine.seen
    assert mine.lacks > 0
    assert mine.way(its) is None


def test_a_profile_of_another_size_is_passed_over() -> None:
    mine, its = started(profile(1), profile(2))
    mine.see(record(20, a=np.full(8, 1 / 8)), "a")
    assert mine.way(its) is None
