import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.ingest.grade import (
    answer_text,
    answers,
    boxed_run,
    duty_of,
    is_right,
    same,
)


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ("5", "5.0"),
        (" 1,234 ", "1234"),
        ("\\dfrac{1}{2}", "0.5"),
        ("\\frac12", "1/2"),
        ("x = 7", "7"),
        ("$\\text{yes}$", "yes"),
        ("50\\%", "50"),
        ("90^\\circ", "90"),
        ("\\left(1, 2\\right)", "(1,2)"),
    ],
)
def test_equal_answers(answer: str, truth: str) -> None:
    assert same(answer, truth)


@pytest.mark.parametrize(
    ("answer", "truth"), [("5", "6"), ("1/0", "0"), ("a+b=7", "7"), ("12", "1,2")]
)
def test_different_answers(answer: str, truth: str) -> None:
    assert not same(answer, truth)


def test_the_last_box_after_thinking_counts() -> None:
    assert is_right("\\boxed{4} no, \\boxed{5}", "5")
    assert not is_right("<think>\\boxed{5}</think> \\boxed{4}", "5")
    assert not is_right("5", "5")


def test_who_answers() -> None:
    assert (duty_of("aggregator"), duty_of("someone")) == ("select", "solve")
    assert [answers(role) for role in ("generator", "evaluator", "synthesizer")] == [
        True,
        False,
        True,
    ]


def test_what_is_no_reference() -> None:
    assert (answer_text(True), answer_text("x" * 1000), answer_text(5)) == (None, None, "5")


@given(st.text(max_size=300), st.text(max_size=60))
def test_nothing_raises(text: str, truth: str) -> None:
    is_right("\\boxed{" + text + "}", truth)


def test_whether_a_run_answers_in_boxes() -> None:
    assert boxed_run([("#### 5", 1.0), ("\\boxed{5}", 0.0)])
    assert boxed_run([("lost", 0.0), (None, None)])  # nothing right yet: boxes may be wanted
    assert not boxed_run([("#### 5", 1.0), ("#### 6", 0.0)])
