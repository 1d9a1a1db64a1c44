"""What a workflow is asked to solve: problems by split and index, and a grader for texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Split = Literal["train", "validation"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem.

    Attributes:
        id: Stable name, the same in every run that uses the same task configuration.
        question: Text that goes into the prompts.
        answer: What the grader compares with.
    """

    id: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Grade:
    """Judgement of one text.

    Attributes:
        correct: True if the text's answer is the problem's.
        answer: The answer found in the text, None if there was none.
    """

    correct: bool
    answer: str | None


class Task(Protocol):
    """A source of problems with a grader.

    An optional attribute ``grading_workers`` says how many texts it grades at a time, see
    :class:`~reference_trainer.rollout.grading.Grading`.
    """

    @property
    def name(self) -> str:
        """Short name, e.g. ``"math"``."""
        ...

    def problem(self, split: Split, index: int) -> Problem:
        """Problem ``index`` of ``split``: the same arguments always give the same problem."""
        ...

    def grade(self, problem: Problem, text: str) -> Grade:
        """Judge ``text`` as an answer to ``problem``."""
        ...
