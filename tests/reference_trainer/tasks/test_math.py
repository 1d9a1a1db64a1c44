import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_trainer.tasks import Problem
from reference_trainer.tasks.math import (
    MathTask,
    apply,
    evaluate_left,
    evaluate_right,
    last_boxed,
    parse_chain,
)


def test_left_and_right() -> None:
    digits, ops = parse_chain(" 9 - 4 * 3")
    assert (digits, ops) == ([9, 4, 3], ["-", "*"])
    assert evaluate_left(digits, ops) == 5  # (9 - 4) * 3 = 15
    assert evaluate_right(digits, ops) == 7  # 9 - 12 = -3
    assert apply("-", 3, 9) == 4


@given(st.integers(0, 10**6), st.sampled_from(["train", "validation"]))
def test_the_strategy_decides(index: int, split: str) -> None:
    task = MathTask(seed=3)
    problem = task.problem(split, index)  # type: ignore[arg-type]
    digits, ops = parse_chain(problem.question)
    assert 2 <= len(ops) <= 3
    assert problem.answer == str(evaluate_left(digits, ops))
    assert evaluate_left(digits, ops) != evaluate_right(digits, ops)
    assert task.problem(split, index) == problem  # type: ignore[arg-type]


def test_the_splits_share_no_chain() -> None:
    task = MathTask()
    train = {task.problem("train", i).question for i in range(3000)}
    validation = {task.problem("validation", i).question for i in range(600)}
    assert len(train) > 2500
    assert not train & validation


def test_difficulty_is_the_length() -> None:
    rng = random.Random(0)
    for length in (2, 3, 4):
        digits, ops = MathTask(min_ops=length, max_ops=length, operators="+*").draw(rng)
        assert (len(digits), len(ops)) == (length + 1, length)
        assert set(ops) <= set("+*")


@pytest.mark.parametrize(
    ("text", "correct", "answer"),
    [
        (" left so \\boxed{ 5 }", True, "5"),
        (" \\boxed{ 5 } wait \\boxed{ 7 }", False, "7"),  # the last box counts
        (" \\boxed{5}", True, "5"),
        (" \\boxed{ 5", False, None),
        (" so 5", False, None),
        ("", False, None),
    ],
)
def test_grading(text: str, correct: bool, answer: str | None) -> None:
    grade = MathTask().grade(Problem("p", " 9 - 4 * 3", "5"), text)
    assert (grade.correct, grade.answer) == (correct, answer)
    assert last_boxed(text) == answer
