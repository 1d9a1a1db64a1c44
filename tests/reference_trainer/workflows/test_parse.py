import pytest

from reference_trainer.episodes import Parse
from reference_trainer.tasks import Grade
from reference_trainer.workflows.parse import (
    parse_answer,
    parse_selection,
    parse_strategies,
    parse_verdict,
)


@pytest.mark.parametrize(
    ("text", "how", "value"),
    [
        (" \\boxed{ 2 }", "tag", "2"),
        (" \\BOXED{3}", "tag", "3"),
        (" \\boxed{ 1 } then \\boxed{ 2 }", "tag", "1"),  # the first box counts
        (" \\boxed{ 7 } so 2", "failed", None),  # the first lone digit is the 7
        (" the answer is 3", "fallback", "3"),
        (" 9 - 4", "failed", None),  # the first digit is out of range
        (" \\boxed{ 0 }", "failed", None),
        (" candidate12 wins", "failed", None),
        ("I choose 2.", "fallback", "2"),
        ("Solution **3** is right", "fallback", "3"),
        ("(1)", "fallback", "1"),
        ("Solution 2: its answer is 14", "fallback", "2"),
        ("\\boxed{Solution 2}", "fallback", "2"),
        ("\\boxed{2", "fallback", "2"),
        ("of the 3 solutions I choose 1", "fallback", "3"),
        ("solution_2", "failed", None),
        ("", "failed", None),
    ],
)
def test_selection(text: str, how: str, value: str | None) -> None:
    assert parse_selection(text, candidates=3) == Parse(how, value)  # type: ignore[arg-type]


def test_answer() -> None:
    assert parse_answer(Grade(True, "5")) == Parse("tag", "5")
    assert parse_answer(Grade(False, None)) == Parse("failed", None)


@pytest.mark.parametrize(
    ("text", "how", "value"),
    [
        (" \\boxed{ Correct }", "tag", "correct"),
        (" \\BOXED{incorrect}", "tag", "incorrect"),
        (" \\boxed{\\text{Incorrect}}", "tag", "incorrect"),
        (" \\boxed{ Correct } no, \\boxed{ Incorrect }", "tag", "correct"),  # the first box counts
        ("It looks correct, but it is Incorrect.", "fallback", "incorrect"),  # the last word counts
        ("\\boxed{Correct or Incorrect}", "fallback", "incorrect"),
        ("\\boxed{Correct.}", "fallback", "correct"),
        ("\\boxed{Correct", "fallback", "correct"),
        ("\\boxed{Correct} since", "tag", "correct"),
        (" \\boxed{ 5 }", "failed", None),
        ("Correctness is not shown", "failed", None),
        ("", "failed", None),
    ],
)
def test_verdict(text: str, how: str, value: str | None) -> None:
    assert parse_verdict(text) == Parse(how, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "how", "strategies"),
    [
        (" STRATEGY 1 : left STRATEGY 2 : right", "tag", (" left", " right")),
        ("STRATEGY 2: b\nSTRATEGY 1: a\nmore\n", "tag", (" a\nmore", " b")),
        ("Plan.\nSTRATEGY 1: a", "tag", (" a",)),
        (" STRATEGY 1 : STRATEGY 2 : left", "tag", (" left",)),  # an empty block is none
        ("".join(f"STRATEGY {n}: s{n}\n" for n in range(1, 6)), "tag", (" s1", " s2", " s3")),
        ("1. induct\n2) count", "fallback", ("induct", "count")),
        ("short\nuse a generating function", "fallback", ("use a generating function",)),
        ("left", "fallback", ("left",)),
        ("  \n", "failed", ()),
    ],
)
def test_strategies(text: str, how: str, strategies: tuple[str, ...]) -> None:
    parse, found = parse_strategies(text, most=3)
    assert (parse.how, found) == (how, strategies)
    assert parse.value == (str(len(found)) if found else None)
