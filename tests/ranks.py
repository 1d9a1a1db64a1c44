"""Processes of one test, forked from a process that has imported what they need.

A start of torch, transformers and TRL takes seconds of processor time. All processes of a worker of
the suite share one; tests that use it are marked ``ranks``, so that they are in one worker.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any

PRELOADED = [
    "tests.integrations.trl_tiny",
    "reference_trainer.setup",
    "reference_trainer.trainer",
    "tests.frozen",  # last
]


def context() -> ForkServerContext:
    """Makes processes that have imported everything."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(PRELOADED)
    return made


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
        process = context().Process(target=_answer, args=(there, target, arguments))
        process.start()
        there.close()
        pipes.append(here)
        processes.append(process)
    try:
        for pipe in pipes:
            assert pipe.poll(timeout), "a process does not answer"
        answers = [pipe.recv() for pipe in pipes]
    finally:
        for process in processes:
            process.kill()
            process.join()
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
