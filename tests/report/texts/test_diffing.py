from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roledrift.report.texts.diffing import contained, grams, jaccard, pieces, side


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


def test_grams_by_hand() -> None:
    a, b = grams("a b c d"), grams("B c D e")
    assert a == {("a", "b", "c"), ("b", "c", "d")}
    assert jaccard(a, b) == 1 / 3
    assert contained(a, b) == 1 / 2
    assert grams("two words") == {("two", "words")}
    assert jaccard(grams(""), grams("")) == 0.0
