"""Siblings: who they are, and what they have in common."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.measure.siblings import (
    sibling_jaccard,
    sign_agreement,
    wrong_agreement,
    wrong_jaccard,
)
from roledrift.spans import SpanTable
from roledrift.sums import EVERYONE, Key, Mean
from roledrift.workflow import EVAL_OPT, VOTING


def spans(episode, slot, role=None, workflow=VOTING, **columns):
    return SpanTable(
        workflow.role_names,
        np.array(role or [0] * len(episode)),
        slot_N=None if slot is None else np.array(slot),
        episode_N=np.array(episode),
        **columns,
    )


def signs(table, workflow=VOTING):
    return sign_agreement(workflow).measure(table)


def test_pairs_with_equal_signs_are_counted():
    advantage = np.array([1.0, 2.0, -0.5, -1.0, -2.0, -3.0])
    found = signs(spans([0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, advantage_N=advantage))
    # Of episode 0 one pair of three, of episode 1 all three.
    assert found == {Key(group, "sign_agreement"): Mean(6, 4) for group in ("generator", EVERYONE)}


def test_what_pushes_nothing_is_left_out():
    advantage = np.array([1.0, 0.0, 1.0, math.nan, 2.0, 0.0])
    found = signs(spans([0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, advantage_N=advantage))
    assert found[Key("generator", "sign_agreement")] == Mean(1, 1)


def test_siblings_are_of_one_role_episode_problem_and_turn():
    def pairs(**columns):
        return signs(spans(**columns)).get(Key("*", "sign_agreement"), Mean(0, 0)).n

    up = np.ones(4)
    assert pairs(episode=[0] * 4, slot=[0, 1, 2, 0], role=[0, 0, 0, 1], advantage_N=up) == 3
    assert pairs(episode=[0, 0, 1, 1], slot=[0, 1, 0, 1], advantage_N=up) == 2
    assert (
        pairs(episode=[0] * 4, slot=[0, 1] * 2, prompt_N=np.array([7, 7, 8, 8]), advantage_N=up)
        == 2
    )
    # Two turns of two slots: with turns two pairs, without them all but those of the same slot.
    assert (
        pairs(episode=[0] * 4, slot=[0, 1] * 2, turn_N=np.array([0, 0, 1, 1]), advantage_N=up) == 2
    )
    assert pairs(episode=[0] * 4, slot=[0, 1] * 2, advantage_N=up) == 4
    assert pairs(episode=[0] * 4, slot=None, advantage_N=up) == 6


def test_a_role_with_one_slot_has_no_siblings():
    table = spans([0, 0], None, workflow=EVAL_OPT, advantage_N=np.ones(2))
    assert signs(table, EVAL_OPT) == {}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from([-1.0, 0.0, 2.0]))))
def test_sign_agreement_equals_a_slow_reference(rows):
    n = same = 0
    for (e, s, a), (f, t, b) in combinations(rows, 2):
        if e == f and s != t and a * b != 0:
            n, same = n + 1, same + (a * b > 0)
    episode, slot, advantage = (
        (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 3
    )
    table = SpanTable(
        VOTING.role_names,
        np.zeros(len(rows), np.int64),
        slot_N=np.array(slot, np.int64),
        episode_N=np.array(episode, np.int64),
        advantage_N=np.array(advantage, np.float64),
    )
    assert signs(table).get(Key("*", "sign_agreement"), Mean(0, 0)) == Mean(n, same)


def test_overlap_is_averaged_in_the_episode_then_over_episodes():
    text = ("a b c d", "A b c", "x y z", "a b c", "a b c", None)
    table = spans([0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, text_N=text)
    found = sibling_jaccard(VOTING).measure(table)
    # Episode 0: {abc, bcd} and {abc} share 1 of 2, the other two pairs nothing. Episode 1: all.
    value = found[Key("generator", "sibling_jaccard")]
    assert value == Mean(2, pytest.approx((0.5 + 0 + 0) / 3 + 1.0))


def test_texts_without_words_overlap_with_nothing():
    found = sibling_jaccard(VOTING).measure(
        spans([0, 0, 1, 1], [0, 1] * 2, text_N=("", " ", "", "a"))
    )
    assert found[Key("*", "sibling_jaccard")] == Mean(1, 0)


def test_wrong_siblings_agree_if_their_last_boxes_do():
    text = (r"\boxed{1} no \boxed{ 2 }", r"\boxed{2}", r"\boxed{3}", r"\boxed{2}", "2", None)
    reward = np.array([0.0, 0.0, -1.0, 1.0, 0.0, 0.0])
    table = spans([0] * 6, [0, 1, 2, 3, 4, 5], text_N=text, reward_N=reward)
    # Wrong with an answer: the first three. The fourth is right, the others gave no answer.
    assert wrong_agreement(VOTING).measure(table)[Key("generator", "wrong_agreement")] == Mean(3, 1)


def test_a_reward_that_is_not_a_number_is_not_wrong():
    table = spans([0, 0], [0, 1], text_N=(r"\boxed{1}",) * 2, reward_N=np.array([0.0, math.nan]))
    assert wrong_agreement(VOTING).measure(table) == {}


def test_wrong_jaccard_is_the_overlap_of_wrong_siblings_alone():
    table = spans(
        [0, 0, 0, 1, 1, 1],
        [0, 1, 2] * 2,
        text_N=("a b c d", "a b c d", "x y z", "a b c", "a b c", "a b c"),
        reward_N=np.array([0.0, 0.0, 1.0, 1.0, 1.0, 0.0]),
    )
    # Of episode 0 the pair (0, 1); in episode 1 only one is wrong.
    assert wrong_jaccard(VOTING).measure(table)[Key("generator", "wrong_jaccard")] == Mean(1, 1.0)
    assert sibling_jaccard(VOTING).measure(table)[Key("generator", "sibling_jaccard")].n == 2
