from __future__ import annotations

import math
from statistics import pstdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.measure.advantages import (
    advantages,
    credit,
    length_credit,
    reward_spread,
    rewards,
    zero_variance,
)
from roledrift.records import summarise
from roledrift.spans import SpanTable
from roledrift.sums import Key, Mean, Moments
from roledrift.workflow import VOTING


def spans(role, group, reward, **columns):
    return SpanTable(
        VOTING.role_names,
        np.array(role),
        group_N=np.array(group),
        reward_N=np.array(reward, dtype=np.float64),
        **columns,
    )


def test_groups_with_equal_rewards_are_counted_per_role():
    table = spans([0, 0, 0, 0, 1, 1], [7, 7, 8, 8, 9, 9], [1, 1, 1, 0, 0, 0])
    sums = zero_variance(VOTING).measure(table)
    assert sums[Key("generator", "zero_variance")] == Mean(2, 1)
    assert sums[Key("aggregator", "zero_variance")] == Mean(1, 1)
    assert sums[Key("*", "zero_variance")] == Mean(3, 2)


def test_the_same_number_in_two_roles_is_two_groups():
    table = spans([0, 0, 1, 1], [7, 7, 7, 7], [1, 1, 0, 0])
    assert zero_variance(VOTING).measure(table)[Key("*", "zero_variance")] == Mean(2, 2)


def test_a_group_of_one_has_no_variance_to_lose():
    assert zero_variance(VOTING).measure(spans([0, 1], [1, 2], [1, 0])) == {}


def test_nan_equals_nothing():
    table = spans([0, 0, 0, 0], [1, 1, 2, 2], [math.nan, math.nan, 1, math.nan])
    assert zero_variance(VOTING).measure(table)[Key("*", "zero_variance")] == Mean(2, 0)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(-2, 2), st.integers(0, 1)), min_size=1))
def test_zero_variance_equals_a_slow_reference(rows):
    groups: dict[tuple[int, int], list[int]] = {}
    for role, group, reward in rows:
        groups.setdefault((role, group), []).append(reward)
    several = [rewards for rewards in groups.values() if len(rewards) > 1]
    expected = Mean(len(several), sum(len(set(rewards)) == 1 for rewards in several))
    sums = zero_variance(VOTING).measure(spans(*zip(*rows, strict=True)))
    assert sums.get(Key("*", "zero_variance"), Mean(0, 0)) == expected


def test_rewards_and_advantages_are_means_over_spans():
    table = spans([0, 0, 1], [0, 0, 0], [1, 0, 1], advantage_N=np.array([0.5, -0.5, 2.0]))
    assert summarise(rewards(VOTING).measure(table))["generator"]["reward"].mean == 0.5
    stat = summarise(advantages(VOTING).measure(table))["generator"]["advantage"]
    assert (stat.mean, stat.sd) == (0.0, pytest.approx(0.5))


def test_credit_is_the_size_of_the_advantage_per_token():
    table = SpanTable(
        VOTING.role_names,
        np.array([0, 0, 1, 1]),
        tokens_N=np.array([3, 1, 2, 9]),
        advantage_N=np.array([-1.0, 0.5, 2.0, math.nan]),
    )
    sums = credit(VOTING).measure(table)
    assert sums[Key("generator", "credit")] == Mean(4, 3.5)
    assert sums[Key("aggregator", "credit")] == Mean(2, 4.0)


def test_length_credit_is_the_correlation_within_groups():
    table = spans(
        [0] * 8 + [1] * 3,
        [0, 0, 0, 1, 1, 1, 2, 2, 0, 0, 0],
        [0.0] * 11,
        # The groups' levels differ widely, which says nothing; group 2 has two rows only.
        tokens_N=np.array([1, 2, 3, 900, 901, 905, 1, 9, 5, 5, 5]),
        advantage_N=np.array([-1, 0, 1, 2.0, 1, 0, 3, 4, -1, 0, 1]),
    )
    sums = length_credit(VOTING).measure(table)
    falling = float(np.corrcoef([900, 901, 905], [2, 1, 0])[0, 1])
    value = sums[Key("generator", "length_credit")]
    assert isinstance(value, Moments)
    assert value.n == 2
    assert value.total == pytest.approx(1 + falling)
    assert (value.low, value.high) == pytest.approx((falling, 1))
    # The aggregator's lengths are all equal: nothing to pay for.
    assert Key("aggregator", "length_credit") not in sums


def test_length_credit_leaves_out_what_is_not_finite():
    table = spans(
        [0] * 4,
        [0] * 4,
        [0.0] * 4,
        tokens_N=np.array([1, 2, 3, 50]),
        advantage_N=np.array([1.0, 2.0, 3.0, math.nan]),
    )
    value = length_credit(VOTING).measure(table)[Key("generator", "length_credit")]
    assert value.total == pytest.approx(1)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.floats(-5, 5)), min_size=1))
def test_reward_spread_equals_a_slow_reference(rows):
    found: dict[tuple[int, int], list[float]] = {}
    for role, group, reward in rows:
        found.setdefault((role, group), []).append(reward)
    spreads = [pstdev(rewards) for rewards in found.values() if len(rewards) > 1]
    sums = reward_spread(VOTING).measure(spans(*zip(*rows, strict=True)))
    value = sums.get(Key("*", "reward_spread"), Mean(0, 0))
    assert value.n == len(spreads)
    assert value.total == pytest.approx(sum(spreads), abs=1e-9)
