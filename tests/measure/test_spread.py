from __future__ import annotations

from statistics import pstdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.measure.spread import RewardSpread
from roledrift.spans import SpanTable
from roledrift.sums import Key, Mean
from roledrift.workflow import VOTING


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.floats(-5, 5)), min_size=1))
def test_it_equals_a_slow_reference(rows: list[tuple[int, int, float]]) -> None:
    found: dict[tuple[int, int], list[float]] = {}
    for role, group, reward in rows:
        found.setdefault((role, group), []).append(reward)
    spreads = [pstdev(rewards) for rewards in found.values() if len(rewards) > 1]
    role_N, group_N, reward_N = (np.array(column) for column in zip(*rows, strict=True))
    table = SpanTable(VOTING.role_names, role_N, group_N=group_N, reward_N=reward_N)
    value = RewardSpread(VOTING).measure(table).get(Key("*", "reward_spread"), Mean(0, 0))
    assert value.n == len(spreads)
    assert value.total == pytest.approx(sum(spreads), abs=1e-9)


def test_a_group_with_a_reward_that_is_no_number_is_left_out() -> None:
    reward_N = np.array([0.0, 1.0, 0.0, np.nan])
    group_N = np.array([0, 0, 1, 1])
    table = SpanTable(VOTING.role_names, np.zeros(4, int), group_N=group_N, reward_N=reward_N)
    assert RewardSpread(VOTING).measure(table)[Key("*", "reward_spread")] == Mean(1, 0.5)
