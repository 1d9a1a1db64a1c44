from __future__ import annotations

import numpy as np
import pytest

from roledrift.measure.verdicts import verdict, verdicts
from roledrift.spans import SpanTable
from roledrift.sums import Key, Mean
from roledrift.workflow import EVAL_OPT


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"\boxed{Correct}", True),
        (r"it is \boxed{ incorrect }", False),
        (r"\boxed{Correct} no, \boxed{Incorrect}", False),
        (r"\boxed{Incorrect}, the answer is \boxed{12}", False),
        (r"\boxed{12}", None),
        ("Correct", None),
        ("", None),
    ],
)
def test_the_last_verdict_counts(text: str, said: bool | None) -> None:
    assert verdict(text) is said


def test_verdicts_are_those_of_judging_roles() -> None:
    texts = (r"\boxed{Correct}", r"\boxed{Correct}", r"\boxed{Incorrect}", None, r"\boxed{7}")
    table = SpanTable(EVAL_OPT.role_names, np.array([0, 1, 1, 1, 1]), text_N=texts)
    judge = EVAL_OPT.role_names[1]
    assert verdicts(EVAL_OPT).measure(table) == {
        Key(group, "verdict_correct"): Mean(2, 1) for group in (judge, "*")
    }
