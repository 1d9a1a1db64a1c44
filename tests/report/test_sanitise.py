from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.report.sanitise import clean, cut, escaped, fenced, one_line


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plain", "plain"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x9b2Jgone", "gone"),
        ("over\rwritten\r\nline", "over\nwritten\nline"),
        ("\u202ereversed\u202c\u200f\u061c", "reversed"),
        ("nul\x00 bell\x07 del\x7f", "nul bell del"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("lone \ud800 surrogate", "lone  surrogate"),
        ("Größe 数学 √", "Größe 数学 √"),
    ],
)
def test_clean(text: str, left: str) -> None:
    assert clean(text) == left


@given(st.text())
def test_clean_leaves_nothing_that_steers_a_terminal_and_is_idempotent(text: str) -> None:
    once = clean(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", once)
    assert clean(once) == once


def test_cut_says_what_it_left_out() -> None:
    text, remark = cut("A" * 500_000 + "B" * 500_000, 2_000)
    assert text == f"{'A' * 1_600}\n[…]\n{'B' * 400}"
    assert remark == "cut: the first 1,600 and the last 400 of 1,000,000 characters"
    assert cut("short", 2_000) == ("short", "")


@given(st.text(alphabet="`ab\n", max_size=60))
def test_no_text_closes_its_own_fence(text: str) -> None:
    first, *body, last = fenced(text).split("\n")
    fence = first.removesuffix("text")
    assert last == fence
    assert all(fence not in line for line in body)


def test_escaped_text_is_one_line_without_markup() -> None:
    assert escaped("a|b\n# <b> [x](y) `c` ![i]") == (
        "a\\|b \\# &lt;b> \\[x\\](y) \\`c\\` \\!\\[i\\]"
    )


def test_one_line() -> None:
    assert one_line("a\n  b\t c") == "a b c"
    assert one_line("x" * 200, 10) == "x" * 9 + "…"
