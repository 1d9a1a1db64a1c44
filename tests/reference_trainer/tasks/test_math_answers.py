from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_trainer.tasks import Grade
from reference_trainer.tasks.math_answers import (
    Verifier,
    grade_math,
    last_box,
    same_answer,
)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    one = Verifier(seconds=1.5)
    yield one
    one.close()


@pytest.mark.parametrize(
    ("text", "box"),
    [
        (r"so \boxed{3}", "3"),
        (r"\boxed{1} then \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{1} then \boxed{2", "1"),
        (r"\boxed {4}", "4"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\boxed{5}}", "5"),
        (r"{ { \boxed{6} ", "6"),
        (r"} } \boxed{7}", "7"),
        (r"<think>\boxed{1}</think> \boxed{2}", "2"),
        (r"<think>\boxed{1}</think> none", None),
        (r"\boxed{}", ""),
        ("no box", None),
        ("", None),
    ],
)
def test_the_last_complete_box_is_found(text: str, box: str | None) -> None:
    assert last_box(text) == box


@pytest.mark.parametrize(
    ("answer", "truth", "same"),
    [
        ("34", "34", True),
        ("034", "34", True),
        ("1,234", "1234", True),
        ("-0", "0", True),
        ("+5", "5", True),
        ("34", "-34", False),
        ("$34$.", "34", True),
        ("34", r"\boxed{34}", True),
        (r"\frac{1}{2}", "0.5", True),
        (r"\dfrac12", r"\frac{1}{2}", True),
        (r"2\sqrt{2}", r"\sqrt{8}", True),
        ("(x+1)^2", "x^2+2x+1", True),
        ("(1,2)", "(2,1)", False),
        (r"\{2,1\}", r"\{1,2\}", True),
        ("nonsense", "34", False),
        ("", "34", False),
        ("34", "", False),
    ],
)
def test_answers_are_compared_by_meaning(
    verifier: Verifier, answer: str, truth: str, same: bool
) -> None:
    assert same_answer(answer, truth, verifier) is same


def test_only_a_complete_box_with_the_right_answer_counts(verifier: Verifier) -> None:
    long = "1" * 2000
    for text, grade in (
        (r"\boxed{3}", Grade(True, "3")),
        (r"\boxed{4}", Grade(False, "4")),
        ("3", Grade(False, None)),
        (r"\boxed{3", Grade(False, None)),
        (r"\boxed{}", Grade(False, None)),
        (rf"\boxed{{{long}}}", Grade(False, long)),
    ):
        assert grade_math(text, "3", verifier=verifier) == grade
    assert not grade_math(rf"\boxed{{{long}}}", long, verifier=verifier).correct


HOSTILE = [
    "9^{9^{9^{9}}}",
    "10000000!",
    "(" * 900,
    "\\frac" * 150,
    "\x00" * 50,
    "\ud800",
    "__import__('os').system('true')",
    "1/0",
    "\\left" * 100,
    "∞" * 300,
]


@pytest.mark.parametrize("answer", HOSTILE)
def test_hostile_answers_are_wrong_and_end(verifier: Verifier, answer: str) -> None:
    grade = grade_math(f"\\boxed{{{answer}}}", "35", verifier=verifier)
    assert not grade.correct
    assert same_answer(r"\frac{6}{4}", "1.5", verifier), "the verifier works again afterwards"


def test_it_works_outside_the_main_thread(verifier: Verifier) -> None:
    verdicts: list[bool | None] = []

    def work() -> None:
        for answer in (r"\frac{6}{4}", "9^{9^{9^{9}}}"):
            verdicts.append(same_answer(answer, "1.5", verifier))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert verdicts == [True, None]


@given(st.text(alphabet="\\boxed{}<think/>fbox 1$", max_size=80))
def test_any_text_is_read_without_error(text: str) -> None:
    box = last_box(text)
    assert box is None or box in text


def test_long_texts_take_linear_time() -> None:
    assert last_box("\\boxed{" * 200_000) is None
    assert last_box("\\boxed{" * 100_000 + "}" * 100_000) == ""
