"""Shares and biases follow from the finished sums, whatever parts these were added from."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.measure.catalogue import probes_for
from roledrift.records import summarise
from roledrift.relative import relative
from roledrift.spans import SpanTable
from roledrift.sums import Distinct, Key, Mean, Moments, add
from roledrift.workflow import VOTING

REAL = st.floats(-10, 10).map(lambda x: round(x, 3))
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 20), REAL, REAL), min_size=1, max_size=30
)


def table(rows):
    role, tokens, reward, advantage = (np.array(column) for column in zip(*rows, strict=True))
    return SpanTable(
        VOTING.role_names,
        role,
        tokens_N=tokens,
        reward_N=reward.astype(np.float64),
        advantage_N=advantage.astype(np.float64),
    )


def sums(spans):
    probes = probes_for("economy", VOTING)
    return add(probe.measure(spans) for probe in probes if probe.needs <= spans.present)


def means(rows, *more):
    found = relative(add(sums(table(part)) for part in (rows, *more)))
    return {(g, n): stat.mean for g, stats in summarise(found).items() for n, stat in stats.items()}


def reference(rows):
    """The definitions, from the rows themselves."""
    x = table(rows)
    found = {}
    mass = np.abs(x.advantage_N) * x.tokens_N
    scatter = (x.advantage_N - x.advantage_N.mean()) ** 2
    varies = np.ptp(x.advantage_N) > 0
    between = 0.0
    for index, role in enumerate(VOTING.role_names):
        of = x.role_N == index
        if not of.any():
            continue
        if x.tokens_N.sum():
            found[role, "token_share"] = x.tokens_N[of].sum() / x.tokens_N.sum()
        if mass.sum() and x.tokens_N[of].sum():
            found[role, "credit_share"] = mass[of].sum() / mass.sum()
        found[role, "reward_bias"] = x.reward_N[of].mean() - x.reward_N.mean()
        b = x.advantage_N[of].mean()
        if np.ptp(x.advantage_N[of]) > 0:
            found[role, "advantage_bias"] = b / x.advantage_N[of].std()
        if varies:
            found[role, "variance_share"] = scatter[of].sum() / scatter.sum()
            between += of.sum() * (b - x.advantage_N.mean()) ** 2
    if varies:
        found["*", "advantage_between"] = between / scatter.sum()
    return found


@given(ROWS)
def test_it_equals_the_definitions(rows):
    found, expected = means(rows), reference(rows)
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, rel=1e-6, abs=1e-6), key


@given(ROWS, ROWS)
def test_parts_give_what_the_whole_gives(a, b):
    whole, parts = means(a + b), means(a, b)
    assert set(whole) == set(parts)
    for key, value in whole.items():
        assert parts[key] == pytest.approx(value, rel=1e-6, abs=1e-6), key


def test_a_worked_example():
    rows = [(0, 10, 1.0, 1.0), (0, 20, 0.0, -1.0), (1, 10, 1.0, 2.0)]
    found = means(rows)
    assert found["generator", "token_share"] == 0.75
    assert found["generator", "credit_share"] == pytest.approx(30 / 50)
    assert found["aggregator", "reward_bias"] == pytest.approx(1 / 3)
    assert found["generator", "advantage_bias"] == 0.0
    assert ("aggregator", "advantage_bias") not in found, "one value has no spread"
    assert found["*", "advantage_between"] == pytest.approx((8 / 3) / (14 / 3))


def test_shares_add_up_to_one():
    found = means([(0, 3, 0.0, 0.5), (0, 2, 1.0, -0.25), (1, 4, 1.0, 1.0)])
    for name in ("token_share", "credit_share", "variance_share"):
        assert sum(found[role, name] for role in VOTING.role_names) == pytest.approx(1.0)


def test_slots_have_shares_too():
    spans = SpanTable(
        VOTING.role_names,
        np.array([0, 0, 1]),
        slot_N=np.array([0, 2, 0]),
        tokens_N=np.array([1, 2, 1]),
    )
    found = summarise(relative(sums(spans)))
    assert {group: stats["token_share"].mean for group, stats in found.items()} == {
        "generator": 0.75,
        "generator/0": 0.25,
        "generator/2": 0.5,
        "aggregator": 0.25,
    }


def test_values_that_are_all_the_same_have_no_bias_and_no_variance():
    found = means([(0, 1, 0.3, 0.1)] * 3 + [(1, 1, 0.3, 0.1)] * 7)
    assert {name for _, name in found} == {"token_share", "credit_share", "reward_bias"}
    assert found["generator", "reward_bias"] == pytest.approx(0.0, abs=1e-12)


def test_a_broken_advantage_makes_no_share():
    found = means([(0, 1, 0.0, math.nan), (1, 1, 0.0, 1.0)])
    assert ("generator", "variance_share") not in found
    assert found["aggregator", "credit_share"] == 1.0


def test_sums_of_another_kind_or_of_nothing_are_passed_over():
    nothing = Moments.of(np.zeros(0))
    odd = Distinct(1, frozenset({1}))
    keys = [Key(group, name) for group in ("generator", "*") for name in ("length", "advantage")]
    assert relative(dict.fromkeys(keys, nothing)) == {}
    assert relative(dict.fromkeys(keys, odd)) == {}
    assert relative({Key("generator", "reward"): Mean(1, 1)}) == {}
