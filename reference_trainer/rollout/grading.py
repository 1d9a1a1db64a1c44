"""Grades texts ahead of time, several at a time, while the next phase is sampled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Self

from reference_trainer.errors import RolloutError
from reference_trainer.tasks import Grade, Problem, Split, Task


class Grading:
    """A task whose grades may be computed before they are asked for.

    A task that grades slowly says with ``grading_workers`` how many texts it grades at a time: as
    many threads wait for its graders. A text that takes long keeps one of them. Without that
    attribute, every text is graded when its grade is asked for, in the caller's thread.

    Use as a context manager. An error ends it without the grades that nobody has begun.

    Args:
        task: What is asked and how it is graded; its ``grade`` is called from several threads.
        patience: Seconds that a grade may be waited for.
    """

    def __init__(self, task: Task, *, patience: float = 1800.0) -> None:
        self._task = task
        self._patience = patience
        workers = int(getattr(task, "grading_workers", 0))
        self._pool = _Threads(workers) if workers else None
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
            self._begun[problem, text] = self._pool.submit(lambda: self._task.grade(problem, text))

    def is_graded(self, problem: Problem, text: str) -> bool:
        """Whether the grade of ``text`` is there, or is not worth a thread."""
        begun = self._begun.get((problem, text))
        return begun is None or begun.done()

    def grade(self, problem: Problem, text: str) -> Grade:
        """The grade of ``text``; waits for it if it was begun.

        Raises:
            RolloutError: If it does not come.
        """
        begun = self._begun.get((problem, text))
        if begun is None:
            return self._task.grade(problem, text)
        if not wait([begun], self._patience).done:
            raise RolloutError(
                f"task {self.name!r} has not graded an answer to problem {problem.id!r} within "
                f"{self._patience:g} s: its grader hangs, or rollout.grading_patience is too "
                "short. A run with checkpoints can be resumed"
            )
        return begun.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.end(cancel=error is not None)


class _Threads:
    """Threads that do not keep a process alive: one of them may hang.

    Args:
        count: Of the threads.
    """

    def __init__(self, count: int) -> None:
        self._work: SimpleQueue[tuple[Future[Grade], Callable[[], Grade]] | None] = SimpleQueue()
        self._all = [
            Thread(target=self._serve, name=f"grading-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._all:
            thread.start()

    def submit(self, work: Callable[[], Grade]) -> Future[Grade]:
        """Do ``work`` when a thread is free."""
        future: Future[Grade] = Future()
        self._work.put((future, work))
        return future

    def end(self, *, cancel: bool) -> None:
        """End the threads when all work is done; with ``cancel`` without what is not begun."""
        while cancel and not self._work.empty():
            self._work.get()
        for _ in self._all:
            self._work.put(None)

    def _serve(self) -> None:
        while (item := self._work.get()) is not None:
            future, work = item
            try:
                future.set_result(work())
            except BaseException as error:  # whoever asks for the grade gets it
                future.set_exception(error)
