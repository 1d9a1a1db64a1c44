"""Processes of one test, forked from a process that has imported what they need.

A start of torch, transformers and TRL takes seconds of processor time. Each worker of the suite has
imported them once its tests are collected, and :func:`share_imports` then forks a server off it,
which forks all processes that tests start later. It is forked before any test runs, because torch
and gloo start threads that a fork would lose. Tests that start processes this way are marked
``ranks``.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import forkserver, resource_tracker, util
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import DupFd
from typing import Any
from unittest.mock import patch


class _Output:
    """Makes the process that receives it write where its sender does: into its test's output."""

    def __reduce__(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return _write_to, (DupFd(1), DupFd(2))


def _write_to(*outputs: Any) -> None:
    for number, output in enumerate(outputs, 1):
        os.dup2(output.detach(), number)


def process(target: Callable[..., Any], *arguments: Any) -> ForkServerProcess:
    """A process, not yet started, that has imported everything."""
    made = multiprocessing.get_context("forkserver").Process
    return made(target=_call, args=(_Output(), target, arguments))


def _call(_: None, target: Callable[..., Any], arguments: Sequence[Any]) -> None:
    target(*arguments)


def share_imports() -> None:
    """Start the fork server as a fork of this process instead of as a fresh interpreter."""
    resource_tracker.ensure_running()  # remains a process of its own
    multiprocessing.set_forkserver_preload([])
    if "tqdm" in sys.modules:
        # One lock for all processes: those that are killed leave none of their own behind.
        sys.modules["tqdm"].tqdm.get_lock()
    with patch.object(util, "spawnv_passfds", _forked):
        forkserver.ensure_running()


def _forked(path: str, arguments: Sequence[str], passed: Sequence[int]) -> int:
    """Run what the interpreter is told on its command line, with the given descriptors alone."""
    pid = os.fork()
    if pid:
        return pid
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for name in os.listdir("/dev/fd"):
            if int(name) not in (0, 1, 2, nothing, *passed):
                # Among others pytest-xdist's: its other end waits until no process has it open.
                os.dup2(nothing, int(name))
        exec(arguments[-1])
    finally:
        os._exit(0)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def as_rank(rank: int, port: int, count: int = 2) -> None:
    """Set what a launcher of ``count`` processes sets."""
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in names.items()} | {"MASTER_ADDR": "127.0.0.1"}


def together(
    target: Callable[..., Any], calls: Sequence[Sequence[Any]], timeout: float = 240
) -> list[Any]:
    """What ``target`` returns for each of ``calls``, all running at the same time."""
    pipes, processes = [], []
    for arguments in calls:
        here, there = multiprocessing.Pipe(duplex=False)
        started = process(_answer, there, target, arguments)
        started.start()
        there.close()
        pipes.append(here)
        processes.append(started)
    try:
        for pipe in pipes:
            assert pipe.poll(timeout), "a process does not answer"
        answers = [pipe.recv() for pipe in pipes]
    finally:
        for started in processes:
            started.kill()
            started.join()
    assert all(done for done, _ in answers), "\n".join(said for done, said in answers if not done)
    return [result for _, result in answers]


def _answer(pipe: Connection, target: Callable[..., Any], arguments: Sequence[Any]) -> None:
    try:
        answer = (True, target(*arguments))
    except BaseException:  # of whatever kind: it is the answer
        answer = (False, traceback.format_exc())
    pipe.send(answer)
    pipe.close()
    # gloo's threads sometimes abort an orderly end of the interpreter; all has been said by now.
    os._exit(0)
