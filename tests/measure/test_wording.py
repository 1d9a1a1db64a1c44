"""Words, openers, and what is copied."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.measure.wording import (
    BUCKETS,
    Words,
    bucket,
    copied,
    copies,
    jaccard,
    opener,
    openers,
    trigrams,
)
from roledrift.records import summarise
from roledrift.spans import SpanTable
from roledrift.sums import Key
from roledrift.workflow import EVAL_OPT, ORCH_WORKERS, SINGLE, VOTING


@pytest.mark.parametrize(
    ("text", "grams"),
    [
        ("", set()),
        (" \n", set()),
        ("One", {("one",)}),
        ("one two", {("one", "two")}),
        ("one  two\nthree", {("one", "two", "three")}),
        ("a b a b a", {("a", "b", "a"), ("b", "a", "b")}),
    ],
)
def test_runs_of_three_words(text, grams):
    assert trigrams(text) == grams


@given(st.text("ab \n"), st.text("ab \n"))
def test_jaccard_is_the_definition(a, b):
    x, y = trigrams(a), trigrams(b)
    found = jaccard(x, y)
    assert found == jaccard(y, x) == (len(x & y) / len(x | y) if x | y else 0.0)
    assert jaccard(x, x) == bool(x)


def test_openers_are_the_first_three_words():
    assert opener("Let us  See, then") == "let us see,"
    assert opener("Yes") == "yes"


def test_different_openers_are_counted_over_parts():
    def sums(*text):
        return openers(VOTING).measure(
            SpanTable(VOTING.role_names, np.zeros(len(text), np.int64), text_N=text)
        )

    key = Key("generator", "openers")
    both = sums("let us see", "Let us see more", None)[key] + sums("first, we add", "", " ")[key]
    stat = summarise({key: both})["generator"]["openers"]
    assert (stat.n, stat.mean) == (3, 2.0)


def test_openers_have_the_same_number_in_every_process():
    code = "from roledrift.measure.wording import _number; print(_number('let us see'))"
    numbers = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
        for _ in range(2)
    }
    assert len(numbers) == 1
    openers(VOTING).measure(SpanTable(VOTING.role_names, np.zeros(1, np.int64), text_N=("\ud800",)))


def measured(role, episode, text, workflow=VOTING, **columns):
    table = SpanTable(
        workflow.role_names, np.array(role), episode_N=np.array(episode), text_N=text, **columns
    )
    found = summarise(copied(workflow).measure(table))
    return {group: (stats["copied"].n, stats["copied"].mean) for group, stats in found.items()}


def test_the_share_of_an_output_that_its_candidates_hold():
    text = ("a b c d", "c d e", "a b c d e", "a b c", "x y z")
    found = measured([0, 0, 1, 0, 1], [0, 0, 0, 1, 1], text)
    # Episode 0: abc and bcd of the first and cde of the second candidate, all there; 1: nothing.
    assert found == {"aggregator": (2, 0.5), "*": (2, 0.5)}


def test_candidates_are_of_the_same_problem_and_episode_and_not_of_later_turns():
    assert measured([0, 1], [0, 1], ("a b c", "a b c")) == {}
    assert measured([0, 1], [0, 0], ("a b c", "a b c"), prompt_N=np.array([1, 2])) == {}
    turn = np.array([0, 0, 1])
    assert measured([0, 1, 0], [0] * 3, ("x", "a b c", "a b c"), EVAL_OPT, turn_N=turn) == {
        "evaluator": (1, 0.0),
        "*": (1, 0.0),
    }


def test_outputs_and_candidates_without_words_are_left_out():
    assert measured([0, 1, 1], [0] * 3, (" ", "a b c", None)) == {}


def test_who_copies():
    assert [copies(one) for one in (VOTING, EVAL_OPT, ORCH_WORKERS, SINGLE)] == [True] * 3 + [False]


def profile(*text):
    roles = np.zeros(len(text), np.int64)
    return Words(VOTING).measure(SpanTable(VOTING.role_names, roles, text_N=text))


def test_a_profile_is_the_mean_over_texts_of_their_shares():
    stat = summarise(profile("So 12 \\boxed{ 3 }", "so", None, " "))["generator"]["words"]
    # Seven pieces: so, 12, \, boxed, {, 3, } of the first text; the second is one.
    expected = np.zeros(BUCKETS)
    expected[bucket("so")] += (1 / 7 + 1) / 2
    expected[bucket("7")] += (2 / 7) / 2
    for piece in ("\\", "boxed", "{", "}"):
        expected[bucket(piece)] += (1 / 7) / 2
    assert (stat.n, stat.mean) == (2, 4.0)
    assert stat.shares == pytest.approx(expected, abs=5e-5)


def test_a_profile_does_not_follow_length_or_numbers():
    short, long = profile("a b 1"), profile("a b 22 A B 3 a b 456")
    key = Key("generator", "words")
    assert short[key].shares == pytest.approx(long[key].shares)
    assert profile("", None) == {}


def test_buckets_are_the_same_in_every_process():
    assert [bucket(word) for word in ("so", "boxed", "7", "{")] == [32, 39, 53, 58]
