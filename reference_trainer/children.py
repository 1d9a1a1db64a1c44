"""Other ``python -m reference_trainer`` processes, a few at a time, one thread each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

Say = Callable[[int, str], None]
"""Gets the number of a command and a line that it printed, from a thread of its own."""


def run_all(
    commands: Sequence[Sequence[str]],
    *,
    jobs: int,
    say: Say,
    done: Callable[[int, int], None] | None = None,
) -> list[int]:
    """Run ``python -m reference_trainer <command>`` for every command.

    Args:
        commands: Their arguments.
        jobs: How many run at the same time.
        say: Gets every line.
        done: Gets the number of every command that has ended, and its exit code.

    Returns:
        Exit codes, in order.
    """

    def run(number: int) -> int:
        code = _run(commands[number], lambda line: say(number, line))
        if done is not None:
            done(number, code)
        return code

    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        return list(pool.map(run, range(len(commands))))


def _run(command: Sequence[str], say: Callable[[str], None]) -> int:
    child = subprocess.Popen(
        [sys.executable, "-m", "reference_trainer", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        text=True,
    )
    assert child.stdout is not None
    try:
        for line in child.stdout:
            say(line.rstrip())
    finally:
        if child.poll() is None and sys.exc_info()[0] is not None:
            child.terminate()
    return child.wait()
