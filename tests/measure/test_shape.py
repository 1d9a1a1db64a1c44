from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.measure.shape import (
    bare_stamp,
    boxed,
    boxes,
    code_fence,
    hedging,
    shape,
    terse,
)
from roledrift.spans import SpanTable
from roledrift.sums import Key, Mean
from roledrift.workflow import EVAL_OPT, Role, Workflow

FENCE = "text\n```python\na = 1\nb = 2\nprint(a)\n```\nmore"


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        (r"\boxed{2}", ["2"]),
        (r"\boxed{ 2 }", ["2"]),
        (r"\boxed {2} then \boxed{3}", ["2", "3"]),
        (r"\boxed{\frac{1}{2}}", [r"\frac{1}{2}"]),
        (r"\boxed{\{1\}}", [r"\{1\}"]),
        (r"\boxed{a \boxed{b}}", [r"a \boxed{b}", "b"]),
        (r"{ \boxed{2}", ["2"]),
        (r"} \boxed{2}", ["2"]),
        (r"\\boxed{2}", ["2"]),
        (r"\boxed{a\\}", [r"a\\"]),
        (r"\boxed{", []),
        (r"\boxed{1", []),
        (r"\boxed{{1}", []),
        (r"\boxed{\}", []),
        (r"\boxed{}", []),
        (r"\boxed{  }", []),
        (r"\boxed 2", []),
        ("boxed{2}", []),
        ("", []),
    ],
)
def test_boxes_are_balanced_and_not_empty(text, contents):
    assert boxes(text) == contents
    assert boxed(text) is bool(contents)


def test_thousands_of_boxes_that_never_close_are_one_pass():
    assert not boxed(r"\boxed{" * 200_000)


@given(st.text(alphabet="\\boxed{} `python\nwait", max_size=200))
def test_no_text_breaks_a_predicate(text):
    answers = boxed(text), bare_stamp(text), code_fence(text), hedging(text)
    assert all(isinstance(answer, bool) for answer in answers)
    assert boxed(text) or not bare_stamp(text)


@pytest.mark.parametrize(("tokens", "holds"), [(30, True), (31, False)])
def test_terse_is_short_and_boxed(tokens, holds):
    assert terse(r"so \boxed{2}", tokens) is holds
    assert not terse("2", tokens)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (r"\boxed{2}", True),
        ("\n  \\boxed{ 2 }  \n", True),
        (r"\boxed{\frac{1}{2}}", True),
        (r"\boxed{a \boxed{b}}", True),
        (r"Answer: \boxed{2}", False),
        (r"\boxed{2}.", False),
        (r"\boxed{1}\boxed{2}", False),
        (r"\boxed{ }", False),
        ("2", False),
    ],
)
def test_a_bare_stamp_is_nothing_but_a_box(text, holds):
    assert bare_stamp(text) is holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (FENCE, True),
        (FENCE.replace("python", "Python "), True),
        (FENCE.replace("\n", "\r\n"), True),
        ("```python\na\nb\nc", True),
        ("```python\na\nb\n```", False),
        ("```python\na\n\n  \nb\n```", False),
        ("```python\n```\n" + FENCE, True),
        ("```\na\nb\nc\n```", False),
        ("```java\na\nb\nc\n```", False),
        ("a\nb\nc", False),
    ],
)
def test_a_code_fence_is_a_python_block_with_a_body(text, holds):
    assert code_fence(text) is holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (r"\boxed{Correct}", True),
        (r"I think \boxed{ INCORRECT }", True),
        (r"\boxed{7} and \boxed{correct}", True),
        (r"\boxed{correctly}", False),
        ("Correct", False),
    ],
)
def test_a_verdict_is_in_a_box(text, holds):
    table = SpanTable(("judge",), np.zeros(1, int), text_N=(text,))
    workflow = Workflow("w", (Role("judge"),), ("p",))
    assert shape(workflow).measure(table)[Key("judge", "verdict_tag")] == Mean(1, holds)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("Wait, that is wrong", True),
        ("Hmm.", True),
        ("let me\nreconsider", True),
        ("ON SECOND THOUGHT", True),
        ("this is wrong", True),
        ("await the waiter", False),
        ("factually", False),
        ("let us reconsider", False),
    ],
)
def test_hedging_is_a_whole_phrase(text, holds):
    assert hedging(text) is holds


def test_shares_are_over_spans_with_text():
    table = SpanTable(
        EVAL_OPT.role_names,
        np.array([1, 1, 1, 1]),
        tokens_N=np.array([2, 500, 400, 1]),
        text_N=(r"\boxed{Correct}", FENCE, r"Wait. \boxed{Incorrect}", None),
    )
    sums = shape(EVAL_OPT).measure(table)
    found = {name: sums[Key("evaluator", name)] for _, name in sums}
    assert found == {
        "terse": Mean(3, 1),
        "boxed": Mean(3, 2),
        "bare_stamp": Mean(3, 1),
        "verdict_tag": Mean(3, 2),
        "code_fence": Mean(3, 1),
        "hedging": Mean(3, 1),
    }


def test_terse_needs_lengths():
    table = SpanTable(EVAL_OPT.role_names, np.array([1]), text_N=(r"\boxed{1}",))
    assert Key("evaluator", "terse") not in shape(EVAL_OPT).measure(table)
