"""How fast programs are graded: one after another, and by the pool of a rollout.

``python -m benchmarks.grading_speed [--programs 32] [--workers 2]`` runs programs of a competition
on ten tests each: 30 % are right and run all of them, 65 % fail the first, 5 % run into the time
limit of one second. Then it trains a tiny model for a few iterations of Voting whose outputs are
graded as if they were such programs, and says which share of an iteration waits for grades: how
much shorter iterations are when grades cost nothing. Wall time is what counts here. Results go to
``benchmarks/out/``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import zlib
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from reference_trainer.config import load
from reference_trainer.rollout.grading import Grading
from reference_trainer.setup import Setup, prepare
from reference_trainer.tasks import Grade, Problem, Split
from reference_trainer.tasks.data import CodeRow, Splits
from reference_trainer.tasks.datasets import DeepCoderTask
from reference_trainer.tasks.math import MathTask
from reference_trainer.tasks.sandbox import Limits, Sandbox
from reference_trainer.tasks.unit_tests import UnitTest
from reference_trainer.trainer import train

OUT = Path(__file__).parent / "out" / "grading_speed.json"
RIGHT = "n = int(input())\nprint(sum(i * i for i in range(n)) % 1000007)"
WRONG = "n = int(input())\nprint(sum(i for i in range(n)))"
ENDLESS = "while True:\n    pass"
_TESTS = tuple(
    UnitTest("stdin_stdout", f"{n}\n", f"{sum(i * i for i in range(n)) % 1000007}\n")
    for n in range(1000, 1010)
)


def program(key: str) -> str:
    """One of the programs for a text, in the shares given above; all texts differ."""
    place = zlib.crc32(key.encode()) % 100
    body = ENDLESS if place < 5 else RIGHT if place < 35 else WRONG
    return f"```python\n# {zlib.crc32(key.encode())}\n{body}\n```"


@dataclass(frozen=True, slots=True)
class ProgramTask:
    """Arithmetic problems whose answers are graded as programs, or without any program.

    Attributes:
        code: Grades programs; None gives every answer the grade of arithmetic.
        grading_workers: Programs graded at a time while others are sampled; 0 = none.
        name: Of the task.
    """

    code: DeepCoderTask | None
    grading_workers: int
    math: MathTask = field(default_factory=MathTask)
    name: str = "programs"

    def problem(self, split: Split, index: int) -> Problem:
        """That of the arithmetic task."""
        return self.math.problem(split, index)

    def grade(self, problem: Problem, text: str) -> Grade:
        """The grade of a program that ``text`` stands for."""
        if self.code is None:
            return self.math.grade(problem, text)
        return self.code.grade(Problem("row", "", ""), program(text + problem.question))


def programs_per_second(task: DeepCoderTask, *, programs: int, workers: int) -> float:
    """Grade ``programs`` of them; with ``workers`` at a time, or one after another for 0."""
    problem = task.problem("train", 0)
    texts = [program(str(number)) for number in range(programs)]
    begin = time.perf_counter()
    with Grading(task) as grading:
        for text in texts if workers else ():
            grading.begin(problem, text)
        for text in texts:
            grading.grade(problem, text)
    return programs / (time.perf_counter() - begin)


def iteration_seconds(setup: Setup, task: ProgramTask) -> float:
    """Median wall time of an iteration; the first is not counted."""
    scene = replace(setup.stage.scene, task=task)
    times = [time.perf_counter()]

    train(
        replace(setup, stage=replace(setup.stage, scene=scene)),
        on_step=lambda _: times.append(time.perf_counter()),
    )
    return statistics.median([end - begin for begin, end in pairwise(times)][1:])


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    options, _ = parser.parse_known_args()
    settings = {
        "train": {"steps": options.steps},
        "validation": {"every": 0},
        "rollout": {"problems": 2, "copies": 4},
    }
    with Sandbox(workers=options.workers) as sandbox, tempfile.TemporaryDirectory() as folder:
        row = CodeRow("row", "Sum of squares.", "", _TESTS)
        task = DeepCoderTask(Splits((row,), (), {}), sandbox, Limits(seconds=1.0))
        serial = programs_per_second(task, programs=options.programs, workers=0)
        pooled = programs_per_second(task, programs=options.programs, workers=options.workers)
        speeds = f"{serial:.1f} serial, {pooled:.1f} with {options.workers} workers"
        print(f"programs per second: {speeds}", flush=True)
        setup = prepare(load("tiny-smoke", settings), cache=Path(folder))
        free = iteration_seconds(setup, ProgramTask(None, 0))
        taken = {
            name: iteration_seconds(setup, ProgramTask(task, workers))
            for name, workers in (("serial", 0), ("pool", options.workers))
        }
    waits = {name: 1 - free / seconds for name, seconds in taken.items()}
    print(
        f"iteration of {2 * 4 * 3} programs: {free:.2f} s without grading; "
        + "; ".join(f"{taken[name]:.2f} s {name}, {waits[name]:.0%} of it waits" for name in taken)
    )
    result = {"programs_per_second": {"serial": serial, "pool": pooled}, "waiting": waits}
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
