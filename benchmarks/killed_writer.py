"""Runs whose process is killed while it writes: at most the step being written is lost.

A child writes steps, texts and alerts as fast as it can and says after each step that it is done.
It is killed with SIGKILL at a random moment, and the run is read: every step that was said to be
done has to be there. Every second child resumes the run of the one before. `python -m
benchmarks.killed_writer --kills 200`.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from roledrift.store.reader import open_run

CHILD = """
import sys
from roledrift import VOTING, Sample
from roledrift.records import RunHeader, Stat, StepRecord
from roledrift.store.writer import RunWriter
begin = int(sys.argv[2])
writer = RunWriter(sys.argv[1], RunHeader("r", VOTING), resume=begin > 0, judged=True)
groups = {role: {f"s{n}": Stat(8, 0.5) for n in range(60)} for role in VOTING.role_names}
for step in range(begin, begin + 100_000):
    writer.write_samples(step, [Sample(step, "generator", "x" * 400, prompt="p")])
    writer.write_step(StepRecord(step, groups=groups))
    sys.stdout.write(f"{step}\\n")
    sys.stdout.flush()
"""


def killed(place: Path, begin: int, seconds: float) -> int:
    """Let a child write and kill it; the last step that it said was done, -1 for none."""
    command = [sys.executable, "-c", CHILD, str(place), str(begin)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    first_lines = [child.stdout.readline()]
    # Its first step says that it has started.
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate()
    complete = [
        line for line in (*first_lines, *rest.splitlines(keepends=True)) if line.endswith("\n")
    ]
    return int(complete[-1]) if complete and complete[-1].strip() else -1


def kills(count: int, seed: int) -> tuple[int, int, list[str]]:
    """How many steps were written, half-written lines that were found, and what went wrong."""
    draw = random.Random(seed)
    written = halves = 0
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as home:
        for number in range(0, count, 2):
            place = Path(home) / str(number)
            begin = 0
            for _ in range(min(2, count - number)):
                last = killed(place, begin, draw.random() * 0.15)
                run = open_run(place)
                steps = {record.step for record in run.steps()}
                lost = set(range(last + 1)) - steps
                if lost:
                    wrong.append(f"run {number}: steps {sorted(lost)} are lost, told up to {last}")
                halves += sum("half-written" in problem for problem in run.problems)
                wrong += [
                    f"run {number}: {problem}" for problem in run.problems if "half" not in problem
                ]
                written, begin = written + last + 1 - begin, last + 1
    return written, halves, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    written, halves, wrong = kills(args.kills, args.seed)
    for failure in wrong:
        print(failure)
    print(f"{args.kills} kills, {written} steps written: {len(wrong)} lost or unreadable, "
          f"{halves} half-written last lines")  # fmt: skip


if __name__ == "__main__":
    main()
