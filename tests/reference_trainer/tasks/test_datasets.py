from dataclasses import replace

import pytest

from reference_trainer.tasks.data import CodeRow, DataError, MathRow, Splits
from reference_trainer.tasks.datasets import DapoMathTask, DeepCoderTask
from reference_trainer.tasks.unit_tests import UnitTest

ECHO = CodeRow("a", "Echo the line.", "", (UnitTest("stdin_stdout", "7\n", "7\n"),))
DOUBLE = CodeRow(
    "b",
    "Double it.",
    "def double(n):",
    tuple(UnitTest("functional", "", "", "double", (n,), 2 * n) for n in (1, 4)),
)


def test_dapo_math() -> None:
    rows = tuple(MathRow(f"m{i}", f"What is {i}/2?", f"\\frac{{{i}}}{{2}}") for i in (1, 3))
    task = DapoMathTask(Splits(rows, rows[:1], {}))
    problem = task.problem("train", 3)
    assert (problem.id, problem.question) == ("m3", "What is 3/2?")
    assert task.problem("validation", 5).id == "m1"
    assert task.grade(problem, "so \\boxed{\\frac{3}{2}}").correct
    wrong = task.grade(problem, "so \\boxed{2}")
    assert (wrong.correct, wrong.answer) == (False, "2")
    assert task.grade(problem, "so 3/2").answer is None
    with pytest.raises(DataError, match="validation split has no rows"):
        DapoMathTask(Splits(rows, (), {})).problem("validation", 0)


def test_deepcoder() -> None:
    task = DeepCoderTask(Splits((ECHO, DOUBLE), (), {}))
    echo, double = task.problem("train", 0), task.problem("train", 1)
    assert "def double(n):" in double.question
    assert "Begin your program" not in echo.question
    assert "standard input" in echo.question
    assert "standard output" in echo.question
    assert "standard" not in double.question
    assert task.grade(echo, "```python\nprint(input())\n```").correct
    assert not task.grade(echo, "```python\nprint(8)\n```").correct
    assert task.grade(double, "Well:\n```python\ndef double(n):\n    return n + n\n```").correct
    assert not task.grade(double, "```python\ndef double(n):\n    return n + 1\n```").correct
    assert task.grade(double, "def double(n): return 2 * n").answer is None
    bare = replace(DOUBLE, starter_code="")
    assert "`double`" in DeepCoderTask(Splits((bare,), (), {})).problem("train", 0).question
    with pytest.raises(DataError, match="1 rows share an id"):
        DeepCoderTask(Splits((ECHO,), (ECHO,), {}))
