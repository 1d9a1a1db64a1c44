import contextlib
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from reference_trainer.policies import AdapterBank
from reference_trainer.pretrain import load_base
from reference_trainer.rollout.engine import Completion, Sampling
from reference_trainer.rollout.grading import Grading
from reference_trainer.rollout.player import Stage, play_episodes
from reference_trainer.rollout.transformers_engine import TransformersEngine
from reference_trainer.tasks import Grade, Problem, Split
from reference_trainer.tasks.data import CodeRow, Splits
from reference_trainer.tasks.datasets import DeepCoderTask
from reference_trainer.tasks.math import MathTask
from reference_trainer.tasks.sandbox import Limits, Sandbox
from reference_trainer.tasks.unit_tests import UnitTest
from reference_trainer.workflows import Scene, load_script
from reference_trainer.workflows.prompts import load_prompts
from roledrift import SINGLE, VOTING

PATIENCE = 20.0
"""Seconds after which a wait counts as one that would last forever."""


@dataclass(frozen=True)
class SlowTask:
    """Arithmetic whose grades wait for something."""

    wait: Callable[[], object]
    grading_workers: int = 3
    task: MathTask = field(default_factory=MathTask)
    name: str = "slow"

    def problem(self, split: Split, index: int) -> Problem:
        return self.task.problem(split, index)

    def grade(self, problem: Problem, text: str) -> Grade:
        self.wait()
        return self.task.grade(problem, text)


def test_texts_are_graded_at_the_same_time() -> None:
    together = threading.Barrier(3)
    task = SlowTask(lambda: together.wait(PATIENCE))
    problem = task.problem("train", 0)
    texts = [f" \\boxed{{ {problem.answer} }}", " \\boxed{ x }", " so"]
    with Grading(task) as grading:
        for text in texts:
            grading.begin(problem, text)
            grading.begin(problem, text)  # once is enough: a fourth would break the barrier
        assert [grading.grade(problem, text).correct for text in texts] == [True, False, False]


def test_an_error_ends_what_nobody_has_begun() -> None:
    release = threading.Event()
    begun = []

    def wait() -> None:
        begun.append(1)
        release.wait(PATIENCE)

    task = SlowTask(wait, grading_workers=2)
    problem = task.problem("train", 0)
    with contextlib.suppress(KeyboardInterrupt), Grading(task) as grading:
        for number in range(50):
            grading.begin(problem, f" {number}")
        raise KeyboardInterrupt
    release.set()
    for thread in threading.enumerate():
        if thread.name.startswith("grading"):
            thread.join()
    assert len(begun) <= 2


def test_a_grader_that_hangs_ends_the_run_and_not_the_wait_for_its_end() -> None:
    """In a process of its own: it ends although a thread of it never does."""
    code = """
import threading
from reference_trainer.rollout.grading import Grading
from reference_trainer.tasks.math import MathTask

class Hangs(MathTask):
    grading_workers = 2
    def grade(self, problem, text):
        return threading.Event().wait()

task = Hangs()
problem = task.problem("train", 0)
with Grading(task, patience=0.2) as grading:
    grading.begin(problem, "x")
    grading.grade(problem, "x")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert re.search(r"'math' has not graded an answer to problem .* within 0\.2 s", done.stderr)


def test_a_quick_task_has_no_threads() -> None:
    before = threading.active_count()
    with Grading(MathTask()) as grading:
        problem = grading.problem("train", 0)
        grading.begin(problem, "x")
        assert threading.active_count() == before
        assert grading.grade(problem, f" \\boxed{{ {problem.answer} }}").correct


def test_candidates_are_graded_while_the_aggregator_writes(
    make_bank: Callable[..., AdapterBank], base_folder: Path
) -> None:
    bank = make_bank("shared")
    aggregator_writes = threading.Event()

    class Watched(TransformersEngine):
        calls = 0

        def collect(self) -> dict[int, Completion]:
            self.calls += 1
            if self.calls == 2:
                aggregator_writes.set()
            return super().collect()

    def wait() -> None:
        assert aggregator_writes.wait(PATIENCE), "grades were asked for before the next phase"

    scene = Scene(SlowTask(wait), load_prompts("tiny"), True)
    engine = Watched(bank, end_ids=(bank.pad_id,))
    stage = Stage(
        load_script("voting"), VOTING.routed("shared"), scene, engine, load_base(base_folder)[1]
    )
    problems = [(0, scene.task.problem("train", 0))]

    def played(stage: Stage) -> object:
        return play_episodes(stage, problems, copies=2, sampling=Sampling(1.0, 8), seed=1)

    one = played(stage)
    assert engine.calls == 2
    assert one == played(replace(stage, scene=replace(scene, task=MathTask())))


def test_nobody_waits_for_a_slow_grade_who_could_be_sampling(
    make_bank: Callable[..., AdapterBank], base_folder: Path
) -> None:
    """Each grade takes until all has been sampled, which must not wait for any of them."""
    bank = make_bank("shared")
    sampled = threading.Event()
    outputs: list[int] = []

    class Streaming(TransformersEngine):
        continuous = True

        def collect(self) -> dict[int, Completion]:
            found = super().collect()
            outputs.extend(found)
            if len(outputs) == 6:
                sampled.set()
            return found

    def wait() -> None:
        assert sampled.wait(PATIENCE), "an episode was graded before the others were sampled"

    scene = Scene(SlowTask(wait), load_prompts("tiny"), True)
    engine = Streaming(bank, end_ids=(bank.pad_id,), max_rows=1)
    stage = Stage(
        load_script("single"), SINGLE.routed("shared"), scene, engine, load_base(base_folder)[1]
    )
    problems = [(number, scene.task.problem("train", number)) for number in range(3)]
    play_episodes(stage, problems, copies=2, sampling=Sampling(1.0, 8), seed=1)
    assert len(outputs) == 6


@pytest.fixture
def two_workers() -> Iterator[Sandbox]:
    with Sandbox(workers=2) as one:
        yield one


def test_a_program_that_never_ends_costs_one_worker_only(two_workers: Sandbox) -> None:
    row = CodeRow("a", "Echo.", "", (UnitTest("stdin_stdout", "7\n", "7\n"),))
    task = DeepCoderTask(Splits((row,), (), {}), two_workers, Limits(seconds=5.0))
    problem = task.problem("train", 0)
    ended: list[str] = []

    class Noted(DeepCoderTask):
        def grade(self, problem: Problem, text: str) -> Grade:
            grade = super().grade(problem, text)
            ended.append(text)
            return grade

    hangs = "```python\nimport time\ntime.sleep(600)\n```"
    right = [f"```python\nprint(input())  # {number}\n```" for number in range(4)]
    with Grading(Noted(task.splits, two_workers, task.limits)) as grading:
        for text in (hangs, *right):
            grading.begin(problem, text)
        assert [grading.grade(problem, text).correct for text in (hangs, *right)] == [False] + [
            True
        ] * 4
    assert ended == [*right, hangs]
