"""Other ``python -m reference_trainer`` processes, a few at a time, one thread each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from types import FrameType
from typing import NoReturn

Say = Callable[[int, str], None]
"""Gets the number of a command and a line that it printed, from a thread of its own."""

_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}

_GRACE_SECONDS = 10.0
"""How long a process may take to end before it is killed."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How commands are started.

    Attributes:
        jobs: Commands at the same time.
        ranks: Processes of a command; several are started by ``torchrun``.
        devices: What ``CUDA_VISIBLE_DEVICES`` is for each of the commands that run at the same
            time; empty to leave it as it is.
    """

    jobs: int
    ranks: int = 1
    devices: tuple[str, ...] = ()

    def line(self, command: Sequence[str]) -> list[str]:
        """The command line of ``python -m reference_trainer <command>``."""
        line = [sys.executable, "-m"]
        if self.ranks > 1:
            line += ["torch.distributed.run", "--standalone", f"--nproc_per_node={self.ranks}"]
            line += ["-m"]
        return [*line, "reference_trainer", *command]


def run_all(
    commands: Sequence[Sequence[str]],
    *,
    launch: Launch,
    say: Say,
    done: Callable[[int, int], None] | None = None,
) -> list[int]:
    """Run ``python -m reference_trainer <command>`` for every command.

    An interrupt (or any other error) ends the processes that run, begins no others, and is raised
    again once they have ended.

    Args:
        commands: Their arguments.
        launch: How many run at the same time, with how many processes, on which devices.
        say: Gets every line.
        done: Gets the number of every command that has ended, and its exit code.

    Returns:
        Exit codes, in order.
    """
    family = _Family()
    places: SimpleQueue[str] = SimpleQueue()
    for place in launch.devices or [""] * launch.jobs:
        places.put(place)

    def run(number: int) -> int:
        place = places.get()
        try:
            line = launch.line(commands[number])
            code = family.run(line, place, lambda line: say(number, line))
        finally:
            places.put(place)
        if done is not None and not family.ending:
            done(number, code)
        return code

    with ThreadPoolExecutor(max_workers=max(1, launch.jobs)) as pool:
        waiting = [pool.submit(run, number) for number in range(len(commands))]
        try:
            return [future.result() for future in waiting]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            family.end()
            raise


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """Let SIGTERM, which schedulers send, end this process as an interrupt from the keyboard does.

    Does nothing outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


class _Family:
    """The processes that run; after :meth:`end` there are none and none is started."""

    def __init__(self) -> None:
        self.ending = False
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[str]] = []

    def run(self, line: Sequence[str], devices: str, say: Callable[[str], None]) -> int:
        """Run one process to its end; its exit code, -1 if it was not started any more."""
        with self._lock:
            if self.ending:
                return -1
            child = subprocess.Popen(
                line,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=os.environ
                | _ENVIRONMENT
                | ({"CUDA_VISIBLE_DEVICES": devices} if devices else {}),
                text=True,
            )
            self._running.append(child)
        assert child.stdout is not None
        try:
            for text in child.stdout:
                say(text.rstrip())
        finally:
            if sys.exc_info()[0] is not None:
                child.terminate()
            code = child.wait()
            with self._lock:
                self._running.remove(child)
        return code

    def end(self) -> None:
        """Ask every process to end, and kill those that do not."""
        with self._lock:
            self.ending = True
            running = list(self._running)
        for child in running:
            child.terminate()
        for child in running:
            try:
                child.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
