from __future__ import annotations

import numpy as np

from roledrift.measure.lengths import chars, lengths, truncation
from roledrift.records import summarise
from roledrift.spans import SpanTable
from roledrift.sums import Key, Mean
from roledrift.workflow import VOTING

SPANS = SpanTable(
    VOTING.role_names,
    np.array([0, 0, 0, 1, -1]),
    tokens_N=np.array([10, 20, 90, 3, 1000]),
    truncated_N=np.array([False, False, True, False, True]),
    text_N=("ab", None, "abcd", "", "x" * 99),
)


def test_lengths_have_quantiles_and_leave_unknown_roles_out():
    stats = summarise(lengths(VOTING).measure(SPANS))
    assert stats["generator"]["length"].mean == 40
    assert stats["generator"]["length"].p50 == 20
    assert stats["*"]["length"].n == 4
    assert stats["*"]["length"].high == 90


def test_truncated_is_a_share_of_spans():
    sums = truncation(VOTING).measure(SPANS)
    assert sums[Key("generator", "truncated")] == Mean(3, 1)
    assert sums[Key("*", "truncated")] == Mean(4, 1)


def test_chars_count_the_texts_that_were_kept():
    stats = summarise(chars(VOTING).measure(SPANS))
    assert (stats["generator"]["chars"].n, stats["generator"]["chars"].mean) == (2, 3.0)
    assert stats["aggregator"]["chars"].mean == 0.0
