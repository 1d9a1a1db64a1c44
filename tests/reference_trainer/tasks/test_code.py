import contextlib
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_trainer.exercises import CodeExercises, Noise
from reference_trainer.tasks import Problem
from reference_trainer.tasks.code import (
    CodeTask,
    arithmetic,
    passes,
    passes_in_sandbox,
    write_chain,
    write_expression,
)
from reference_trainer.tiny_model import WORDS

CASES = json.dumps([[x, (x + 3) * 8] for x in (-2, 0, 1, 5, 9, 12)])
PROGRAMS = [
    ("def f(x): return ( ( x + 3 ) * 8 )", True),
    ("def f(x): return x * 8 + 2 4", False),
    ("def f(x): return 8 * x + 3 * 8", True),
    ("def f(x): return - ( - 3 - x ) * 8", True),
    ("def f(x): return ( ( x * 8 ) + 3 )", False),
    ("def f(x): return ( ( x + 3 ) * 8", False),
    ("def f(x): x = x + 3 ; return x * 8", True),  # beyond arithmetic: the sandbox decides
    ("def f(x): return mul ( x + 3 ) 8", False),
    ("def f(x): return ( x is x ) * 8 * ( x + 3 )", True),
    ("def f(x): return x is x", False),
    ("def f(x): return add", False),
    ("def f(x): return f(x)", False),
    ("def g(x): return x", False),
    ("x = 3", False),
    ("return x", False),
    ("", False),
]


def test_the_expression_is_the_chain() -> None:
    assert write_chain([3, 8], ["+", "*"]) == " add 3 ; mul 8 ;"
    assert write_expression([3, 8], ["+", "*"]) == "( ( x + 3 ) * 8 )"
    function = arithmetic("def f(x): return ( ( x + 3 ) * 8 )")
    assert function is not None
    assert [function(x) for x in (0, 2, -5)] == [24, 40, -16]


@pytest.mark.parametrize(("program", "right"), PROGRAMS)
def test_the_verdict_is_that_of_the_sandbox(program: str, right: bool) -> None:
    assert passes(program, CASES) is right
    assert passes_in_sandbox(program, CASES) is right


def test_the_verdict_is_that_of_the_sandbox_on_random_programs() -> None:
    rng = random.Random(0)
    task = CodeTask()
    exercises = CodeExercises(task)
    verdicts = []
    for _ in range(12):
        chain = exercises.draw(rng)
        text = exercises.answer(exercises.solution(chain, noise=Noise(slip=0.2), rng=rng))
        words = text.split(" ")
        if rng.random() < 0.5:  # a word of the vocabulary in place of another
            words[rng.randrange(len(words))] = rng.choice(WORDS)
        cases = task.cases(chain.digits, chain.ops)
        program = " ".join(words)
        verdicts.append(passes(program, cases))
        assert verdicts[-1] == passes_in_sandbox(program, cases), program
    assert set(verdicts) == {True, False}


@given(st.integers(0, 10**6), st.sampled_from(["train", "validation"]))
def test_the_strategy_decides(index: int, split: str) -> None:
    task = CodeTask(seed=3)
    problem = task.problem(split, index)  # type: ignore[arg-type]
    assert task.problem(split, index) == problem  # type: ignore[arg-type]
    words = problem.question.split()
    signs = {"add": "+", "sub": "-", "mul": "*"}
    digits, ops = [int(word) for word in words[1::3]], [signs[word] for word in words[::3]]
    assert 2 <= len(ops) <= 3
    assert len(json.loads(problem.answer)) == 6
    right = write_expression(digits, ops)
    wrong = write_expression(digits[::-1], ops[::-1])
    for expression, correct in ((right, True), (wrong, False)):
        text = f" left ```python \n def f(x): return {expression} \n ```"
        assert task.grade(problem, text).correct is correct


def test_the_splits_share_no_chain() -> None:
    task = CodeTask()
    train = {task.problem("train", i).question for i in range(1000)}
    validation = {task.problem("validation", i).question for i in range(200)}
    assert not train & validation


def test_only_a_closed_fence_is_an_answer() -> None:
    problem = Problem("p", " add 3 ; mul 8 ;", CASES)
    grade = CodeTask().grade(problem, " ```python \n def f(x): return 8 * ( x + 3 )")
    assert (grade.correct, grade.answer) == (False, None)
    text = " ```python \n x ``` wait ```python \n def f(x): return 8 * ( x + 3 ) \n ```"
    grade = CodeTask().grade(problem, text)  # the last block counts
    assert (grade.correct, grade.answer) == (True, "def f(x): return 8 * ( x + 3 )")


@pytest.mark.parametrize("program", ["(" * 5000, "def f(x): return " + "x+" * 300 + "x", "\0"])
def test_hostile_programs_are_not_evaluated_here(program: str) -> None:
    with contextlib.suppress(SyntaxError):
        assert arithmetic(program) is None
