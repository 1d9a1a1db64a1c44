from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.config import SamplingConfig
from roledrift.measure.sampling import TextSampler

ROLES = ["generator", "generator", "generator", "aggregator"] * 4
PROMPTS = [name for name in "abcd" for _ in range(4)]
EPISODES = [f"{name}0" for name in PROMPTS]
TOKENS = [3, 9, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]


def pick(sampler, step=0, prompts=PROMPTS, episodes=EPISODES):
    return sampler.pick(step, ROLES, tokens=TOKENS, prompts=prompts, episodes=episodes)


def flagged(picks, flag):
    return [one.row for one in picks if flag in one.flags]


def test_canaries_are_the_first_prompts_and_stay():
    sampler = TextSampler(SamplingConfig(canaries=2, per_role=0))
    assert flagged(pick(sampler), "canary") == [0, 1, 2, 3, 4, 5, 6, 7]
    later = ["x"] * 4 + ["b"] * 4 + ["y"] * 4 + ["z"] * 4
    assert flagged(pick(sampler, 1, later), "canary") == [4, 5, 6, 7]
    assert pick(sampler, 2, ["x"] * 16) == []
    assert flagged(pick(sampler, 3), "canary") == [0, 1, 2, 3, 4, 5, 6, 7]
    assert sampler.canaries == ("a", "b")


def test_of_a_canary_one_episode_is_kept_whole():
    sampler = TextSampler(SamplingConfig(canaries=1, per_role=0))
    episodes = ["e1"] * 2 + ["e0"] * 2 + ["e1"] * 2 + ["e2"] * 10
    assert flagged(pick(sampler, 0, ["a"] * 16, episodes), "canary") == [0, 1, 4, 5]


def test_without_episodes_a_canary_keeps_one_row_per_role():
    sampler = TextSampler(SamplingConfig(canaries=1, per_role=0))
    assert flagged(pick(sampler, 0, PROMPTS, None), "canary") == [0, 3]


def test_canaries_are_found_in_steps_that_keep_nothing():
    sampler = TextSampler(SamplingConfig(canaries=1, every=2))
    assert pick(sampler, 1) == []
    assert sampler.canaries == ("a",)
    assert pick(sampler, 2) != []


def test_a_resumed_sampler_follows_the_old_canaries():
    sampler = TextSampler(SamplingConfig(canaries=2, per_role=0), canaries=["c"])
    assert flagged(pick(sampler), "canary") == [0, 1, 2, 3, 8, 9, 10, 11]
    assert sampler.canaries == ("c", "a")


def test_prompts_without_a_name_are_nobodys_canary():
    sampler = TextSampler(SamplingConfig(canaries=2, per_role=0))
    assert pick(sampler, 0, [""] * 16) == []
    assert sampler.pick(1, ROLES, tokens=TOKENS) == []


def test_each_role_keeps_random_rows_and_its_longest():
    picks = pick(TextSampler(SamplingConfig(canaries=1, per_role=2)))
    assert flagged(picks, "longest") == [1, 11]
    drawn = flagged(picks, "random")
    assert sorted(ROLES[row] for row in drawn) == ["aggregator"] * 2 + ["generator"] * 2
    assert not set(drawn) & set(flagged(picks, "canary"))
    assert [one.row for one in picks] == sorted({one.row for one in picks})


def test_a_row_that_is_kept_twice_has_both_flags():
    picks = pick(TextSampler(SamplingConfig(canaries=1, per_role=1)))
    assert next(one.flags for one in picks if one.row == 1) == ("canary", "longest")


def extremes(advantages=None, truncated=None, **config):
    sampler = TextSampler(SamplingConfig(canaries=0, per_role=1, **config))
    picks = sampler.pick(0, ROLES, tokens=TOKENS, advantages=advantages, truncated=truncated)
    flags = ("highest advantage", "lowest advantage", "truncated")
    return [flagged(picks, flag) for flag in flags]


def test_each_role_keeps_its_extremes():
    advantages = [float(i % 5) for i in range(16)]
    # generators: rows 0-2, 4-6, 8-10, 12-14; aggregators: 3, 7, 11, 15. Of equal ones the first.
    highest, lowest, truncated = extremes(advantages, [row in (5, 6, 11) for row in range(16)])
    assert (highest, lowest) == ([3, 4], [0, 15])
    assert truncated in ([5, 11], [6, 11])


def test_what_is_all_the_same_has_no_extremes():
    assert extremes([0.0] * 16, [False] * 16) == [[], [], []]
    assert extremes([float("nan")] * 16) == [[], [], []]
    assert extremes() == [[], [], []]


def test_an_advantage_that_is_no_number_is_no_extreme():
    advantages = [float("nan"), *range(15)]
    assert extremes(advantages)[:2] == [[14, 15], [1, 3]]


def test_extremes_do_not_change_what_is_drawn():
    sampler = TextSampler(SamplingConfig())
    plain = sampler.pick(3, ROLES, tokens=TOKENS)
    full = sampler.pick(3, ROLES, tokens=TOKENS, advantages=list(range(16)), truncated=[True] * 16)
    assert flagged(plain, "random") == flagged(full, "random")


def test_few_rows_are_all_kept():
    picks = TextSampler(SamplingConfig(per_role=5)).pick(0, ["generator"], tokens=[3])
    assert [(one.row, one.flags) for one in picks] == [(0, ("random", "longest"))]
    assert TextSampler(SamplingConfig()).pick(0, [], tokens=[]) == []


@pytest.mark.parametrize("off", [SamplingConfig(every=0), SamplingConfig(per_role=0, canaries=0)])
def test_it_can_be_switched_off(off):
    assert pick(TextSampler(off)) == []


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_picks_depend_on_seed_and_step_only(seed, step):
    config = SamplingConfig(seed=seed)
    fresh, used = TextSampler(config), TextSampler(config)
    for earlier in range(3):
        pick(used, earlier)
    assert pick(fresh, step) == pick(used, step)


def test_seeds_and_steps_differ():
    drawn = {
        tuple(flagged(pick(TextSampler(SamplingConfig(seed=seed))), "random")) for seed in range(20)
    }
    assert len(drawn) > 5
    sampler = TextSampler(SamplingConfig())
    assert len({tuple(flagged(pick(sampler, step), "random")) for step in range(20)}) > 5


def test_global_random_states_are_untouched():
    before, numpy_before = random.getstate(), np.random.get_state()[1].copy()
    pick(TextSampler(SamplingConfig()))
    assert before == random.getstate()
    np.testing.assert_array_equal(numpy_before, np.random.get_state()[1])


def test_columns_of_another_length_are_refused():
    with pytest.raises(ValueError, match="one value per span"):
        TextSampler(SamplingConfig()).pick(0, ROLES, tokens=[1])
