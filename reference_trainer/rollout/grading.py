"""Grades texts ahead of time, several at a time, while the next phase is sampled."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from reference_trainer.tasks import Grade, Problem, Split, Task


class Grading:
    """A task whose grades may be computed before they are asked for.

    A task that grades slowly says with ``grading_workers`` how many texts it grades at a time: as
    many threads wait for its graders. A text that takes long keeps one of them. Without that
    attribute, every text is graded when its grade is asked for, in the caller's thread.

    Use as a context manager. An error ends it without the grades that nobody has begun.

    Args:
        task: What is asked and how it is graded; its ``grade`` is called from several threads.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        workers = int(getattr(task, "grading_workers", 0))
        self._pool = ThreadPoolExecutor(workers, "grading") if workers else None
        self._begun: dict[tuple[Problem, str], Future[Grade]] = {}

    @property
    def name(self) -> str:
        """That of the task."""
        return self._task.name

    def problem(self, split: Split, index: int) -> Problem:
        """That of the task."""
        return self._task.problem(split, index)

    def begin(self, problem: Problem, text: str) -> None:
        """Start to grade ``text``; the same text for the same problem is graded once."""
        if self._pool is not None and (problem, text) not in self._begun:
            self._begun[problem, text] = self._pool.submit(self._task.grade, problem, text)

    def grade(self, problem: Problem, text: str) -> Grade:
        """The grade of ``text``; waits for it if it was begun."""
        begun = self._begun.get((problem, text))
        return self._task.grade(problem, text) if begun is None else begun.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=error is None, cancel_futures=error is not None)
