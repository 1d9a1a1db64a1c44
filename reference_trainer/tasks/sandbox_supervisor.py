"""What the sandbox does for one program: start it, watch it, end all it started, report.

Standard library only: this runs in the sandbox's own processes, see
:mod:`reference_trainer.tasks.sandbox_child`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import select
import signal
import socket
import tempfile
import time
from dataclasses import dataclass, field
from typing import NoReturn

from reference_trainer.tasks import sandbox_kernel as kernel
from reference_trainer.tasks.sandbox_program import EXIT_MEMORY, HOME, Fence, Request, become

_TICK = 0.05
"""Seconds between looks at the memory and the files of a program."""

_STDERR_TAIL = 4096
_FILES_WATCHED = 4096
_STREAMS = ("stdout", "stderr", "result")
"""Written by the program to descriptors 1, 2 and 3."""


@dataclass(slots=True)
class _Run:
    """A program under supervision."""

    request: Request
    fence: Fence
    proc: int
    program: int
    init: int | None
    home: str
    session: socket.socket
    started: float
    streams: dict[int, bytearray]
    names: dict[int, str]
    verdict: str | None = None
    reaped: tuple[int, float] | None = None
    poll: select.poll = field(default_factory=select.poll)


def supervise(session: socket.socket, fence: Fence, proc: int) -> NoReturn:
    """Serve one request and end."""
    home: str | None = None
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with session.makefile("rb") as source:
            request = Request(**json.loads(source.readline()))
            code = source.read(request.code_bytes).decode("utf-8", "replace")
            stdin = source.read(request.stdin_bytes)
        home = _home(request, fence)
        run = _start(request, code, stdin, _Places(session, fence, proc, home))
        _watch(run)
        _end_all(run)
        _drain(run)
        _reply(run)
    except OSError as error:
        with contextlib.suppress(OSError):
            session.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
    finally:
        if home is not None and not fence.own_processes:
            with contextlib.suppress(OSError):
                _remove(home)
        os._exit(0)


@dataclass(frozen=True, slots=True)
class _Places:
    session: socket.socket
    fence: Fence
    proc: int
    home: str


def _home(request: Request, fence: Fence) -> str:
    """The program's own directory, gone after the run."""
    user = None if fence.first_user is None else fence.first_user + request.slot
    if fence.own_processes:
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWPID)
        owner = os.getuid() if user is None else user
        kernel.mount(
            "tmpfs",
            HOME,
            "tmpfs",
            kernel.MS_NOSUID | kernel.MS_NODEV,
            f"mode=700,uid={owner},gid={os.getgid() if user is None else user}"
            f",size={request.disk},nr_inodes={_FILES_WATCHED}",
        )
        return HOME
    home = tempfile.mkdtemp(dir=fence.scratch)
    if user is not None:
        os.chown(home, user, user)
    return home


def _start(request: Request, code: str, stdin: bytes, places: _Places) -> _Run:
    fence = places.fence
    init = _start_init() if fence.own_processes else None
    if init is None:
        kernel.adopt_orphans()
    source = os.memfd_create("stdin", os.MFD_ALLOW_SEALING)
    os.truncate(source, len(stdin))
    os.pwrite(source, stdin, 0)
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(source, fcntl.F_ADD_SEALS, seals)
    pipes = [os.pipe() for _ in range(3)]
    started = time.monotonic()
    program = os.fork()
    if program == 0:
        wanted = [source, *(writer for _, writer in pipes)]
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in wanted]
        for place, descriptor in enumerate(high):
            os.dup2(descriptor, place, inheritable=True)
        become(request, code, fence, places.home)
    os.close(source)
    for _, writer in pipes:
        os.close(writer)
    readers = [reader for reader, _ in pipes]
    return _Run(
        request,
        fence,
        places.proc,
        program,
        init,
        places.home,
        places.session,
        started,
        streams={reader: bytearray() for reader in readers},
        names=dict(zip(readers, _STREAMS, strict=True)),
    )


def _start_init() -> int:
    """Process 1 of the program's namespace: when it is killed, the kernel kills all others."""
    init = os.fork()
    if init == 0:
        kernel.die_with_parent(signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        os.setsid()
        os.closerange(0, 1 << 12)
        while True:
            signal.pause()
    return init


def _watch(run: _Run) -> None:
    """Until the program ends or breaks a limit."""
    deadline = run.started + run.request.seconds
    ended = os.pidfd_open(run.program)
    for reader in run.streams:
        os.set_blocking(reader, False)
        run.poll.register(reader, select.POLLIN)
    run.poll.register(ended, select.POLLIN)
    run.poll.register(run.session.fileno(), select.POLLIN)
    look = run.started + _TICK
    while run.verdict is None:
        now = time.monotonic()
        if now >= deadline:
            run.verdict = "timeout"
            break
        if now >= look:
            _look(run)
            look = time.monotonic() + _TICK
            continue
        wait = math.ceil(1000 * (min(look, deadline) - now))
        ready = {descriptor for descriptor, _ in run.poll.poll(wait)}
        if run.session.fileno() in ready:
            run.verdict = "abandoned"
        for reader in ready & set(run.streams):
            _read(run, reader)
        if ended in ready:
            break
    os.close(ended)


def _read(run: _Run, reader: int) -> bool:
    """Take what is there; False at the end or when there is nothing now."""
    try:
        data = os.read(reader, 1 << 16)
    except BlockingIOError:
        return False
    if not data:
        with contextlib.suppress(KeyError):
            run.poll.unregister(reader)
        return False
    kept = run.streams[reader]
    kept += data
    if len(kept) > run.request.output:
        run.verdict = run.verdict or "output"
        del kept[run.request.output :]
        return False
    return True


def _drain(run: _Run) -> None:
    """Read what lies in the pipes; all writers are dead."""
    for reader in run.streams:
        while _read(run, reader):
            pass


def _look(run: _Run) -> None:
    """Limits the kernel does not know: memory of all processes together, files at the floor."""
    page = os.sysconf("SC_PAGE_SIZE")
    resident = 0
    for pid in _descendants(run.proc, os.getpid()):
        with contextlib.suppress(OSError, ValueError, IndexError):
            resident += page * int(_proc_file(run.proc, f"{pid}/statm").split()[1])
    if resident > run.request.memory:
        run.verdict = "memory"
    elif not run.fence.own_processes and _too_full(run.home, run.request.disk):
        run.verdict = "output"


def _proc_file(proc: int, name: str) -> bytes:
    descriptor = os.open(name, os.O_RDONLY, dir_fd=proc)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)


def _descendants(proc: int, root: int) -> list[int]:
    pids: list[int] = []
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):
            folder = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=proc)
            try:
                threads = os.listdir(folder)
            finally:
                os.close(folder)
            for thread in threads:
                with contextlib.suppress(OSError):
                    children = _proc_file(proc, f"{pid}/task/{thread}/children").split()
                    waiting += [int(child) for child in children]
        if pid != root:
            pids.append(pid)
    return pids


def _too_full(home: str, limit: int) -> bool:
    """True if there are too many bytes or files, or folders too deep to be looked into."""
    used = count = 0
    waiting = [home]
    while waiting:
        try:
            for entry in os.scandir(waiting.pop()):
                count += 1
                used += 512 * entry.stat(follow_symlinks=False).st_blocks
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                if used > limit or count > _FILES_WATCHED:
                    return True
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return True
            # The program deletes and locks files while we look.
    return False


def _end_all(run: _Run) -> None:
    """Kill the program and everything it started, and wait until it is gone."""
    if run.init is not None:
        os.kill(run.init, signal.SIGKILL)
        _reap(run)
        os.waitpid(run.init, 0)
        return
    for attempt in range(1000):
        if run.fence.first_user is not None:
            _kill_user(run.fence.first_user + run.request.slot)
        else:
            # Stopping them first keeps them from starting others between the two looks.
            for sent in (signal.SIGSTOP, signal.SIGKILL):
                for pid in _descendants(run.proc, os.getpid()):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, sent)
        _reap(run)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(min(0.001 * attempt, 0.05))
            continue
        return
    raise OSError("processes of the program survive SIGKILL")


def _reap(run: _Run) -> None:
    if run.reaped is None:
        _, status, usage = os.wait4(run.program, 0)
        run.reaped = status, usage.ru_utime + usage.ru_stime


def _kill_user(user: int) -> None:
    """Kill every process of ``user`` in one system call, which no forking outruns."""
    killer = os.fork()
    if killer == 0:
        os.setresuid(user, user, user)
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        os._exit(0)
    os.waitpid(killer, 0)


def _remove(home: str) -> None:
    """Delete a directory that a program has filled.

    Folders are moved to the top before they are emptied, so that no path grows too long, and each
    is made accessible before. No process of the program is left to interfere.
    """
    top = tempfile.mkdtemp(dir=os.path.dirname(home))
    waiting, number = [home], 0
    while waiting:
        folder = waiting.pop()
        os.chmod(folder, 0o700)
        for entry in list(os.scandir(folder)):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)
                number += 1
                waiting.append(f"{top}/{number}")
                os.rename(entry.path, waiting[-1])
            else:
                os.unlink(entry.path)
        os.rmdir(folder)
    os.rmdir(top)


def _status(run: _Run) -> str:
    assert run.reaped is not None
    if run.verdict is not None:
        return run.verdict
    code = os.waitstatus_to_exitcode(run.reaped[0])
    if code < 0:
        spent = run.reaped[1] >= run.request.cpu_seconds
        return "timeout" if spent and -code in (signal.SIGXCPU, signal.SIGKILL) else "killed"
    return {0: "ok", EXIT_MEMORY: "memory"}.get(code, "error")


def _reply(run: _Run) -> None:
    parts = {run.names[reader]: bytes(kept) for reader, kept in run.streams.items()}
    parts["stderr"] = parts["stderr"][-_STDERR_TAIL:]
    header = {
        "status": _status(run),
        "seconds": time.monotonic() - run.started,
        "lengths": [len(parts[name]) for name in _STREAMS],
    }
    run.session.sendall(
        json.dumps(header).encode() + b"\n" + b"".join(parts[name] for name in _STREAMS)
    )
