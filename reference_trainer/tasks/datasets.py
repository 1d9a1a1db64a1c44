"""The data sets of the paper as tasks: rows from ``data.py``, judged as the paper's code does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from reference_trainer.tasks import Grade, Problem, Split
from reference_trainer.tasks.data import (
    DAPO_MATH,
    DEEPCODER,
    TEST_ROWS,
    CodeRow,
    DataError,
    MathRow,
    Row,
    Splits,
    load_dapo_math,
    load_deepcoder,
)
from reference_trainer.tasks.math_answers import Verifier, grade_math
from reference_trainer.tasks.released_code import passes_released, released_block
from reference_trainer.tasks.released_math import grade_released_math, released_verifier
from reference_trainer.tasks.sandbox import Limits, Sandbox, default_sandbox
from reference_trainer.tasks.unit_tests import UnitTest, last_code_block, passes_tests

_STREAMS = (
    "\n\nYour program must read its input from standard input and write the answer, and nothing "
    "else, to standard output. Do not run it on the examples yourself."
)
_FUNCTION = (
    "\n\nWrite the function `{name}`, or a method of that name in a class `Solution`, which "
    "returns the answer."
)
_STARTER = "\n\nBegin your program with this code:\n```python\n{code}\n```"

# What LiveCodeBench's prompts put around a question, in our words.
_RELEASED = (
    "You are good at programming in Python. What follows is the specification of a problem: write "
    "a correct Python program that does what it says and passes all tests.\n\n{question}"
    "### Format: {format}\n```python\n{code}\n```\n\n"
    "### Answer: (in the format above, with the backticks)\n\n"
)
_RELEASED_STARTER = (
    "Write the solution into the starter code below, and put your code between the delimiters."
)
_RELEASED_STREAMS = (
    "Read the input from stdin, solve the problem, and write the answer to stdout (do not test on "
    "the sample input yourself). Put your code between delimiters as shown below. When the program "
    "is run it must read the input, do the computation and write the output to STDOUT."
)


@dataclass(frozen=True, slots=True)
class DapoMathTask:
    """DAPO-Math: an answer is right if math-verify says so of the last box.

    Attributes:
        splits: Rows; ``test`` is the validation split. An index beyond the last row starts over.
        verifier: Where answers are compared; None for the process's own.
        released: Grade by the rules of the paper's code.
        name: ``"dapo_math"``.
    """

    splits: Splits[MathRow]
    verifier: Verifier | None = None
    released: bool = False
    name: str = "dapo_math"

    def problem(self, split: Split, index: int) -> Problem:
        """Row ``index`` of ``split``."""
        row = _row(self.splits, split, index)
        question = row.question if self.released else row.question.strip()
        return Problem(row.id, question, row.answer)

    def grade(self, problem: Problem, text: str) -> Grade:
        """Compare the last box of ``text`` with the answer."""
        grader = grade_released_math if self.released else grade_math
        return grader(text, problem.answer, verifier=self.verifier)


@dataclass(frozen=True, slots=True)
class DeepCoderTask:
    """DeepCoder: a program is right if it passes every test, each in a process of its own.

    Attributes:
        splits: Rows; ``test`` is the validation split. An index beyond the last row starts over.
        sandbox: Where programs run; None for the process's own.
        limits: Limits of one test; None for the sandbox's usual ones.
        released: Pose and grade by the rules of the paper's code.
        name: ``"deepcoder"``.
    """

    splits: Splits[CodeRow]
    sandbox: Sandbox | None = None
    limits: Limits | None = None
    released: bool = False
    name: str = "deepcoder"
    _tests: dict[str, tuple[UnitTest, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows = (*self.splits.train, *self.splits.test)
        tests = {row.id: row.tests for row in rows}
        if len(tests) < len(rows):
            raise DataError(
                f"{len(rows) - len(tests)} rows share an id with another: tests are found by id"
            )
        object.__setattr__(self, "_tests", tests)

    @property
    def grading_workers(self) -> int:
        """Programs graded at a time: as many as the sandbox runs."""
        return (self.sandbox or default_sandbox()).workers

    def problem(self, split: Split, index: int) -> Problem:
        """Row ``index`` of ``split`` with the form that its tests demand.

        ``answer`` stays empty: the tests are kept by id.
        """
        row = _row(self.splits, split, index)
        if row.prepared:
            return Problem(row.id, row.question, "")
        question = _as_released(row) if self.released else row.question.strip() + _demanded(row)
        return Problem(row.id, question, "")

    def grade(self, problem: Problem, text: str) -> Grade:
        """Run the last fenced block of ``text`` on the row's tests, up to the first failure."""
        program = released_block(text) if self.released else last_code_block(text)
        if program is None:
            return Grade(False, None)
        passes = passes_released if self.released else passes_tests
        tests = self._tests[problem.id]
        return Grade(passes(program, tests, limits=self.limits, sandbox=self.sandbox), program)


@dataclass(frozen=True, slots=True)
class DapoMathSource:
    """Where the rows of a :class:`DapoMathTask` are.

    Attributes:
        source: A file, a folder, or an id on the hub.
        subset: Configuration of a hub data set; files have none.
        validation: A source whose rows are validated on instead of the test split; empty for that.
        name: ``"dapo_math"``.
    """

    source: str = DAPO_MATH
    subset: str = "en"
    validation: str = ""
    name: Literal["dapo_math"] = "dapo_math"

    def load(self, *, released: bool = False) -> DapoMathTask:
        """Read the rows; raises like the loader."""
        splits = load_dapo_math(self.source, config=self.subset, validation=self.validation)
        return DapoMathTask(splits, released_verifier() if released else None, released)


@dataclass(frozen=True, slots=True)
class DeepCoderSource:
    """Where the rows of a :class:`DeepCoderTask` are.

    Attributes:
        source: A file, a folder, or an id on the hub.
        subset: Configuration of a hub data set; files have none.
        test_rows: Size of the validation split.
        name: ``"deepcoder"``.
    """

    source: str = DEEPCODER
    subset: str = "primeintellect"
    test_rows: int = TEST_ROWS
    name: Literal["deepcoder"] = "deepcoder"

    def load(
        self,
        sandbox: Sandbox | None = None,
        limits: Limits | None = None,
        *,
        released: bool = False,
    ) -> DeepCoderTask:
        """Read the rows for a task that runs programs in ``sandbox``; raises like the loader."""
        splits = load_deepcoder(self.source, subset=self.subset, test_rows=self.test_rows)
        return DeepCoderTask(splits, sandbox, limits, released)


def _as_released(row: CodeRow) -> str:
    """The question with what the paper's code puts around it; nothing precedes the format."""
    starter = row.starter_code
    return _RELEASED.format(
        question=row.question,
        format=_RELEASED_STARTER if starter else _RELEASED_STREAMS,
        code=starter or "# YOUR CODE HERE",
    )


def _demanded(row: CodeRow) -> str:
    """What the tests demand of a program's form and the question may not say."""
    starter = _STARTER.format(code=row.starter_code) if row.starter_code.strip() else ""
    if any(test.kind == "stdin_stdout" for test in row.tests):
        return _STREAMS + starter
    return starter or _FUNCTION.format(name=row.tests[0].function)


def _row(splits: Splits[Row], split: Split, index: int) -> Row:
    rows = splits.train if split == "train" else splits.test
    if not rows:
        raise DataError(f"the {split} split has no rows")
    return rows[index % len(rows)]
