import numpy as np

from roledrift.measure.groups import PerSpan, Pooled, SpanProbe, groups
from roledrift.spans import SpanTable
from roledrift.sums import Key, Mean
from roledrift.workflow import VOTING

TABLE = SpanTable(
    VOTING.role_names,
    role_N=np.array([0, 1, 0, -1, 0]),
    slot_N=np.array([0, 0, 2, 0, 0]),
    tokens_N=np.array([3, 1, 5, 9, 4]),
)


def test_groups_are_roles_slots_and_everyone_known() -> None:
    found = {name: rows.tolist() for name, rows in groups(TABLE, VOTING)}
    assert found == {
        "generator": [0, 2, 4],
        "generator/0": [0, 4],
        "generator/2": [2],
        "aggregator": [1],
        "*": [0, 1, 2, 4],
    }


def test_rows_without_a_value_have_no_weight() -> None:
    valid = np.array([True, True, False, True, True])
    rows = np.array([0, 2, 4])
    moments = PerSpan(np.array([3.0, 1.0, np.nan, 9.0, 4.0]), valid).over(rows)
    assert (moments.n, moments.total) == (2, 7.0)
    pooled = Pooled(valid.astype(np.int64), np.array([3.0, 1.0, 0.0, 9.0, 4.0])).over(rows)
    assert pooled == Mean(2.0, 7.0)


def test_a_group_in_which_nothing_was_seen_has_no_entry() -> None:
    nothing = np.zeros(5, dtype=np.bool_)
    only_first = np.array([True, False, False, False, False])
    probe = SpanProbe(
        "p",
        frozenset(),
        VOTING,
        lambda spans: {
            "never": PerSpan(np.ones(len(spans)), nothing),
            "once": PerSpan(np.ones(len(spans)), only_first),
        },
    )
    assert set(probe.measure(TABLE)) == {
        Key("generator", "once"),
        Key("generator/0", "once"),
        Key("*", "once"),
    }
