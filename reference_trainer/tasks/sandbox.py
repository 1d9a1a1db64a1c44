"""Runs programs that a model wrote, without trusting them.

A program gets no network, no files but the system's and Python's own (read-only) and an empty
directory that is gone afterwards, a clean environment, and limits on time, memory, processes and
output; when it ends or breaks a limit everything it started is killed. What this machine offers
decides how that is enforced; :class:`~reference_trainer.tasks.protection.Protection` says what
holds:

* ``namespaces``: the surroundings are built by the kernel's namespaces, of which each program has
  one of processes for itself;
* ``rlimits``: the floor where a container forbids namespaces: resource limits, another user (if
  started by root), Landlock and seccomp (if the kernel has them).

The best level is found out once, by trying. Programs start as forks of a small warm interpreter
that holds no data, so that a run costs a few milliseconds.

Only the standard library can be imported by programs unless ``library`` adds folders.
"""

from __future__ import annotations

import atexit
import json
import logging
import math
import os
import queue
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from reference_trainer.tasks.protection import LEVELS, Level, Protection
from reference_trainer.tasks.sandbox_launch import (
    USERS_PER_SANDBOX,
    first_line,
    first_user,
    launcher_command,
    standard_library,
)
from reference_trainer.tasks.sandbox_launch import SandboxError as SandboxError
from reference_trainer.tasks.sandbox_program import Fence, Request

_LOG = logging.getLogger(__name__)

Status = Literal["ok", "error", "timeout", "memory", "output", "killed"]

_GRACE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use.

    Attributes:
        seconds: Wall clock.
        memory: Bytes: address space of each process, and resident memory of all of them together.
        processes: Processes and threads.
        files: Open files per process.
        output: Bytes of stdout, and of stderr, and of a function's result written as JSON.
        disk: Bytes of files.
    """

    seconds: float = 6.0
    memory: int = 2 << 30
    processes: int = 32
    files: int = 128
    output: int = 8 << 20
    disk: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Completed:
    """How a run went.

    Attributes:
        status: ``ok`` (exit status 0), ``error`` (exception or another exit status), ``timeout``,
            ``memory``, ``output`` (too much output or too many files), ``killed`` (by a signal).
        stdout: Output, bytes that are not UTF-8 replaced.
        stderr: The last 4 KiB of the error output.
        seconds: Wall clock.
        level: Level in force.
        result: What a called function returned, as untrusted JSON; None if it did not return.
    """

    status: Status
    stdout: str
    stderr: str
    seconds: float
    level: Level
    result: bytes | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """What a called function returned.

    Attributes:
        run: The run.
        value: Plain data: None, bool, int, float, str, lists and dicts of them. None if it failed.
        returned: False if the run failed or the result was no plain data.
    """

    run: Completed
    value: Any
    returned: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a program's function.

    Attributes:
        function: Name of the function, or of a method of the class ``Solution``.
        arguments: Its arguments, plain data.
        nonce: Written next to the result.
    """

    function: str
    arguments: tuple[Any, ...]
    nonce: str


class Sandbox:
    """A launcher process and up to ``workers`` programs at a time. Threads may share it.

    Attributes:
        workers: Programs at a time.
        protection: What is in force.
        launcher_pid: Process id of the launcher.
        first_user: Programs run as this user id and the ``workers - 1`` next; None as the caller's.

    Args:
        level: Insist on this level; None takes the best that works.
        workers: Programs at a time, from all threads; None for one per CPU.
        library: More folders that programs can import from, e.g. one that holds numpy.
        seccomp: False leaves out the filter of system calls, to test what holds without.
        landlock: False leaves out Landlock, to test what holds without.

    Raises:
        SandboxError: If the level, or every level, does not work here.
    """

    def __init__(
        self,
        level: Level | None = None,
        *,
        workers: int | None = None,
        library: Sequence[str | Path] = (),
        seccomp: bool = True,
        landlock: bool = True,
    ) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        if not 0 < self.workers <= USERS_PER_SANDBOX:
            raise SandboxError(f"workers must be 1 to {USERS_PER_SANDBOX}, got {workers}")
        self._library = (*standard_library(), *(str(Path(path).resolve()) for path in library))
        self._switches = seccomp, landlock
        self._lock = threading.Lock()
        self._slots: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(self.workers):
            self._slots.put(slot)
        refusals = []
        for candidate in LEVELS if level is None else (level,):
            try:
                self._launch(candidate)
            except SandboxError as error:
                refusals.append(f"{candidate}: {error}")
                continue
            _LOG.info("sandbox: %s; not possible: %s", self.protection, refusals or "nothing")
            return
        raise SandboxError("no sandbox works here; " + "; ".join(refusals))

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the launcher. Runs in progress end at the latest when their time is over."""
        with self._lock:
            self._control.close()
            self._process.wait()

    def run(
        self,
        code: str,
        *,
        stdin: str = "",
        limits: Limits | None = None,
        preamble: str = "",
        call: Call | None = None,
    ) -> Completed:
        """Run one program as a script, or call one of its functions.

        Args:
            code: The program.
            stdin: Its input.
            limits: Its limits.
            preamble: Code to run before it in the same names, e.g. customary imports.
            call: What to call after the program's top level; None runs it as a script.

        Raises:
            SandboxError: If the sandbox itself failed; never because of what the program did.
        """
        limits = limits or Limits()
        text = code.encode("utf-8", "replace")
        data = stdin.encode("utf-8", "replace")
        slot = self._slots.get()
        try:
            request = Request(
                slot=slot,
                preamble=preamble,
                function=call.function if call else None,
                arguments=list(call.arguments) if call else [],
                nonce=call.nonce if call else "",
                cpu_seconds=max(1, math.ceil(limits.seconds)),
                code_bytes=len(text),
                stdin_bytes=len(data),
                **asdict(limits),
            )
            header = json.dumps(asdict(request)).encode()
            return self._exchange(header + b"\n" + text + data, limits.seconds)
        finally:
            self._slots.put(slot)

    def _exchange(self, message: bytes, seconds: float) -> Completed:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self._hand_over(theirs)
            ours.settimeout(seconds + _GRACE_SECONDS)
            try:
                ours.sendall(message)
                with ours.makefile("rb") as source:
                    reply = json.loads(source.readline() or b"{}")
                    parts = [source.read(length) for length in reply.get("lengths", ())]
            except OSError as error:
                raise SandboxError(f"the sandbox's supervisor did not answer: {error}") from error
        if len(parts) != 3:
            raise SandboxError(f"the sandbox's supervisor failed: {reply.get('error', 'no reply')}")
        stdout, stderr, result = parts
        return Completed(
            reply["status"],
            stdout.decode("utf-8", "replace"),
            stderr.decode("utf-8", "replace"),
            reply["seconds"],
            self.protection.level,
            result or None,
        )

    def _hand_over(self, session: socket.socket) -> None:
        with self._lock:
            try:
                socket.send_fds(self._control, [b"\0"], [session.fileno()])
            except OSError as error:
                raise SandboxError(f"the sandbox's launcher has ended: {error}") from error

    def _launch(self, level: Level) -> None:
        scratch = tempfile.mkdtemp(prefix="sandbox-")
        seccomp, landlock = self._switches
        fence = Fence(level, first_user(), seccomp, landlock, scratch, self._library)
        ours, theirs = socket.socketpair()
        process = subprocess.Popen(
            launcher_command(fence, theirs.fileno()),
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "LANG": "C.UTF-8",
                # The same program gives the same output each time, as far as sets decide.
                "PYTHONHASHSEED": "0",
                # Each arena reserves 64 MiB of address space, which is limited, per thread.
                "MALLOC_ARENA_MAX": "1",
            },
            cwd="/",
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        theirs.close()
        try:
            answer = first_line(ours, process)
        except SandboxError:
            ours.close()
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        finally:
            if level != "rlimits":
                # Only the launcher's own view of the files still needs it.
                shutil.rmtree(scratch, ignore_errors=True)
        self._control, self._process = ours, process
        self.launcher_pid, self.first_user = process.pid, fence.first_user
        self.protection = Protection(
            level, fence.first_user is not None, answer["seccomp"], answer["landlock"]
        )


@cache
def default_sandbox() -> Sandbox:
    """The sandbox of this process, started on first use; ends with the process."""
    sandbox = Sandbox()
    atexit.register(sandbox.close)
    return sandbox


def run_functional(
    code: str,
    function: str,
    *arguments: Any,
    limits: Limits | None = None,
    preamble: str = "",
    sandbox: Sandbox | None = None,
) -> Returned:
    """Call a method of a program's class ``Solution``, or its function if it has no such class.

    The function must be the program's own: a name that the preamble offers, and that the program
    leaves as it is or imports again, counts as not defined.

    The result is read as JSON. A value of any other class, or JSON that is too deep or too large to
    read, counts as not returned.
    """
    nonce = secrets.token_hex(16)
    call = Call(function, arguments, nonce)
    run = (sandbox or default_sandbox()).run(code, limits=limits, preamble=preamble, call=call)
    if run.status != "ok" or run.result is None:
        return Returned(run, None, False)
    try:
        answer = json.loads(run.result)
        if set(answer) == {"nonce", "value"} and answer["nonce"] == nonce:
            return Returned(run, answer["value"], True)
    except (ValueError, RecursionError, TypeError):
        pass
    return Returned(run, None, False)
