from hypothesis import given
from hypothesis import strategies as st

from roledrift.store.columns import pack, unpack

LEAVES = st.one_of(st.integers(0, 9), st.sampled_from([0.5, "x"]), st.just([1]))
KEYS = st.sampled_from(["a", "b/c", "*"])


@given(st.lists(st.dictionaries(KEYS, LEAVES), max_size=4))
def test_rows_come_back_from_columns(rows: list[dict[str, object]]) -> None:
    assert unpack(pack(rows)) == rows


def test_nested_rows_come_back_from_columns() -> None:
    rows = [{"a": {"b": 1.5, "c": 2}, "d": "x"}, {"a": {"b": 1.5}, "e": [1]}, {"d": "x"}]
    packed = pack(rows)
    assert unpack(packed) == rows
    assert pack([{"a": {"b": 1}}] * 3)["same"] == {"a\tb": 1}
