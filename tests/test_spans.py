"""Span rows: columns that fit, selections and stacks that lose nothing."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.errors import CaptureError
from roledrift.spans import Comparison, Provenance, SpanTable, concat, describe

ROLES = ("generator", "aggregator")


def pair(n, kind="old", **facts):
    real = np.linspace(0.0, 1.0, n)
    return Comparison(kind, np.arange(n), -real, -2 * real, real, real, real, **facts)


def table(n=6):
    return SpanTable(
        roles=ROLES,
        role_N=np.arange(n) % 2,
        slot_N=np.arange(n) % 3,
        tokens_N=np.arange(n) + 1,
        reward_N=np.arange(n) / 2,
        comparisons=(pair(n),),
        text_N=tuple(None if i % 2 else str(i) for i in range(n)),
    )


def same(a, b):
    assert (a.roles, a.present, a.text_N) == (b.roles, b.present, b.text_N)
    for name in a.present - {"text_N", "old"}:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for one, other in zip(a.comparisons, b.comparisons, strict=True):
        for field in fields(one):
            np.testing.assert_array_equal(
                getattr(one, field.name), getattr(other, field.name), err_msg=field.name
            )


@given(st.lists(st.integers(0, 6), max_size=3).map(sorted))
def test_selecting_pieces_and_stacking_them_gives_the_table(cuts):
    whole = table()
    borders = [0, *cuts, 6]
    pieces = [whole.select(np.arange(a, b)) for a, b in pairwise(borders)]
    same(concat(pieces), whole)


def test_select_takes_a_mask_or_indices():
    mask = np.array([True, False, True, False, False, False])
    same(table().select(mask), table().select(np.array([0, 2])))
    assert table().select(mask).text_N == ("0", "2")


def test_present_names_columns_and_comparisons():
    assert table().present == {"role_N", "slot_N", "tokens_N", "reward_N", "text_N", "old"}


def test_a_column_of_another_length_is_refused_by_name():
    with pytest.raises(CaptureError, match=r"reward_N.: 2"):
        SpanTable(ROLES, np.zeros(3, np.int64), reward_N=np.zeros(2))
    with pytest.raises(CaptureError, match=r"comparison 'old'.: 2"):
        SpanTable(ROLES, np.zeros(3, np.int64), comparisons=(pair(2),))


def test_a_kind_appears_once():
    with pytest.raises(CaptureError, match="repeat a kind"):
        SpanTable(ROLES, np.zeros(3, np.int64), comparisons=(pair(3), pair(3)))


def test_roles_without_rows_and_unknown_rows_are_left_out():
    spans = SpanTable(ROLES, np.array([1, -1, 1]))
    assert [(name, rows.tolist()) for name, rows in spans.by_role()] == [("aggregator", [0, 2])]


def test_groups_are_roles_and_their_slots():
    spans = SpanTable(ROLES, np.array([0, 0, 0, 1]), slot_N=np.array([0, 1, 0, 0]), slots=(3, 1))
    assert [(name, rows.tolist()) for name, rows in spans.by_group()] == [
        ("generator", [0, 1, 2]),
        ("generator/0", [0, 2]),
        ("generator/1", [1]),
        ("aggregator", [3]),
    ]


def test_a_part_of_a_table_has_the_same_groups_as_the_whole():
    spans = SpanTable(ROLES, np.zeros(2, np.int64), slot_N=np.array([0, 1]), slots=(3, 1))
    part = spans.select(np.array([0]))
    assert [name for name, _ in part.by_group()] == ["generator", "generator/0"]


@pytest.mark.parametrize(
    ("a", "b", "comparable"), [(0.7, 0.7, True), (0.7, 1.0, False), (None, 1.0, True)]
)
def test_log_probs_at_two_known_temperatures_do_not_compare(a, b, comparable):
    assert pair(2, temperature_a=a, temperature_b=b).comparable is comparable


def test_stacking_refuses_other_columns_and_nothing():
    with pytest.raises(CaptureError, match="slot_N"):
        concat([table(), replace(table(), slot_N=None)])
    with pytest.raises(CaptureError, match="at least one"):
        concat([])


@pytest.mark.parametrize(
    ("kind", "sources", "text"),
    [
        ("update", {(1.0, 1.0, 1)}, "after vs before the optimizer step, T=1.0, 1 step between"),
        (
            "rollout",
            {(0.7, 1.0, 0), (0.7, 1.0, 3), (0.7, 1.0, 1)},
            "policy vs rollout engine, T=0.7 vs T=1.0, 0 to 3 steps between",
        ),
        (
            "rollout",
            {(0.7, None, 2), (0.7, 0.7, 2)},
            "policy vs rollout engine, T=0.7 or T=0.7 vs T unknown, 2 steps between",
        ),
        (
            "old",
            {(None, None, None)},
            "policy vs policy at the start of the iteration, T unknown, steps between unknown",
        ),
        ("reference", {(1, 1, None)}, "policy vs reference, T=1.0"),
    ],
)
def test_comparisons_in_words(kind, sources, text):
    assert describe(kind, {Provenance(*one) for one in sources}) == text


def test_extremes_and_bins_go_with_their_rows():
    low, bins = np.arange(4.0), np.arange(12).reshape(4, 3)
    full = replace(pair(4), low_N=low, high_N=low + 1, bins_N=bins)
    spans = SpanTable(ROLES, np.array([0, 1, 0, 1]), comparisons=(full,))
    parts = [spans.select(np.array([2, 3])), spans.select(np.array([0]))]
    one = concat(parts).comparison("old")
    assert one.low_N.tolist() == [2, 3, 0]
    assert one.bins_N.tolist() == [[6, 7, 8], [9, 10, 11], [0, 1, 2]]
    without = replace(spans, comparisons=(pair(4),))
    for stacked in (concat([spans, without]), concat([without, spans])):
        assert stacked.comparison("old").bins_N is None, "half a column is none"
