from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roledrift.report.texts.diffing import contained, grams, pieces, side


@given(st.text(max_size=200), st.text(max_size=200))
def test_both_sides_come_back_but_for_white_space(left: str, right: str) -> None:
    parts = pieces(left, right)
    assert side(parts, "+") == right
    assert side(parts, "-").split() == left.split()


def test_words_not_letters() -> None:
    assert pieces("take solution 1 now", "take solution 2 now") == (
        ("=", "take solution "),
        ("-", "1 "),
        ("+", "2 "),
        ("=", "now"),
    )


def test_a_collapsed_text_is_quick_and_complete() -> None:
    parts = pieces("ha! " * 500, "ha? " * 300 + "x")
    assert side(parts, "+") == "ha? " * 300 + "x"


def test_the_share_of_a_text_that_is_in_another_by_hand() -> None:
    assert contained(grams("a b c d"), grams("B c D e")) == 1 / 2
    assert contained(grams(""), grams("a")) == 0.0
