from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roledrift.report.texts.diffing import containment, side, trigrams_of, word_diff


@given(st.text(max_size=200), st.text(max_size=200))
def test_both_sides_come_back_but_for_white_space(left: str, right: str) -> None:
    parts = word_diff(left, right)
    assert side(parts, "+") == right
    assert side(parts, "-").split() == left.split()


def test_words_not_letters() -> None:
    assert word_diff("take solution 1 now", "take solution 2 now") == (
        ("=", "take solution "),
        ("-", "1 "),
        ("+", "2 "),
        ("=", "now"),
    )


def test_a_collapsed_text_is_quick_and_complete() -> None:
    parts = word_diff("ha! " * 500, "ha? " * 300 + "x")
    assert side(parts, "+") == "ha? " * 300 + "x"


def test_the_share_of_a_text_that_is_in_another_by_hand() -> None:
    assert containment(trigrams_of("a b c d"), trigrams_of("B c D e")) == 1 / 2
    assert containment(trigrams_of(""), trigrams_of("a")) == 0.0
