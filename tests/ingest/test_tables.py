import numpy as np

from roledrift.ingest.rows import SpanRow, pair
from roledrift.ingest.tables import shares_of, stacked, tables_of
from roledrift.sums import Key, Mean

ROLES = ("a", "b")


def test_a_missing_value_stays_missing() -> None:
    rows = [
        SpanRow(0, "a", slot=0, tokens=3, reward=1.0),
        SpanRow(0, "b", slot=0, tokens=4),
        SpanRow(0, "a", slot=1, tokens=5, reward=0.0),
    ]
    with_reward, without = tables_of(rows, ROLES)
    assert (len(with_reward), len(without)) == (2, 1)
    assert with_reward.present == {"role_N", "slot_N", "tokens_N", "reward_N"}
    assert "reward_N" not in without.present
    assert [name for name, _ in with_reward.by_group()] == ["a", "a/0", "a/1"]


def test_names_become_the_same_numbers_everywhere() -> None:
    (one,) = tables_of([SpanRow(0, "a", group="x", prompt="p")], ROLES)
    (two,) = tables_of([SpanRow(1, "b", group="x", prompt="\udc80")], ROLES)
    assert one.group_N is not None
    assert two.group_N is not None
    assert one.group_N.tolist() == two.group_N.tolist()
    assert one.group_N.dtype == np.int64


def test_tables_made_before_a_role_was_known_stack() -> None:
    early = list(tables_of([SpanRow(0, "a", tokens=1)], ("a",)))
    late = list(tables_of([SpanRow(0, "b", tokens=2)], ROLES))
    (whole,) = stacked([*early, *late], ROLES)
    assert (whole.roles, whole.role_N.tolist(), len(whole)) == (ROLES, [0, 1], 2)


def test_comparisons_at_other_temperatures_stay_apart() -> None:
    rows = [
        SpanRow(0, "a", pairs=(pair("rollout", [-1.0], [-1.5], temperatures=(t, 1.0)),))
        for t in (1.0, 0.7)
    ]
    tables = list(stacked(list(tables_of(rows, ROLES)), ROLES))
    assert sorted(table.comparisons[0].comparable for table in tables) == [False, True]


def test_shares() -> None:
    rows = [
        SpanRow(0, "a", slot=0, shares={"correct": True}),
        SpanRow(0, "a", shares={"correct": False}),
    ]
    (sums,) = shares_of(rows)
    assert sums == {
        Key("a", "correct"): Mean(2, 1),
        Key("a/0", "correct"): Mean(1, 1),
        Key("*", "correct"): Mean(2, 1),
    }
