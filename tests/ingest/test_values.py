import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.ingest.values import (
    at,
    content,
    integer,
    moment,
    number,
    prompt_of,
    rows,
    section,
    text,
    truth,
)

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_numbers() -> None:
    assert number("1.5e3") == 1500
    assert number(" -2 ") == -2
    assert number("np.float64(0.25)") == 0.25
    assert number(True) == 1
    assert math.isnan(number("nan") or 0)
    assert number("Infinity") == math.inf
    for odd in ("", "abc", "1_000", None, [1], {}, 10**400, "1" * 500, "0x1"):
        assert number(odd) is None


def test_whole_numbers() -> None:
    assert (integer(3), integer("4"), integer(5.0)) == (3, 4, 5)
    for odd in (1.5, "x", True, math.nan, math.inf, 2**70, "9" * 60, None):
        assert integer(odd) is None


def test_truths() -> None:
    assert [truth(one) for one in (True, 0, "false", "1", "maybe", None, math.nan)] == [
        True, False, False, True, None, None, None,
    ]  # fmt: skip


def test_places_and_messages() -> None:
    body = {"a": {"b": {"c": 1}}, "a.b": 2}
    assert (at(body, "a.b"), at(body, "a.b.c"), at(body, "a.x.c"), at(3, "a")) == (2, 1, None, None)
    assert section(body, "a") == {"b": {"c": 1}}
    assert section([], "a") == {}
    assert content([{"type": "text", "text": "x"}, {"type": "image"}]) == "x"
    assert (
        prompt_of([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]) == "q"
    )
    assert prompt_of("q") == "q"


@given(ANYTHING)
def test_nothing_raises(value: object) -> None:
    for read in (number, integer, text, truth, rows, content, prompt_of):
        read(value)
    at(value, "a.b")
    section(value, "a")


@pytest.mark.parametrize(
    "value",
    [1767225600, 1767225600.0, 1767225600000, "1767225600", "2026-01-01T00:00:00Z", "2026-01-01"],
)
def test_a_moment_is_seconds_since_1970(value: object) -> None:
    assert moment(value) == 1767225600.0


@pytest.mark.parametrize("value", [None, 12.5, -1, float("nan"), "noon", "9" * 500, 1e30, True])
def test_what_is_no_moment_is_none(value: object) -> None:
    assert moment(value) is None
