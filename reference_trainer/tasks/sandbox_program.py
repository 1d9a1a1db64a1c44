"""What happens in the process that runs an untrusted program: it is locked in, then becomes it.

Standard library only, see :mod:`reference_trainer.tasks.sandbox_kernel`. Nothing here is trusted
after :func:`become` has started the program: the program shares the interpreter and can change all
of it.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import json
import os
import resource
import signal
import sys
import threading
import traceback
import types
from dataclasses import dataclass
from typing import Any

from reference_trainer.tasks import sandbox_kernel as kernel

EXIT_MEMORY = 86
"""Exit status after MemoryError. A program that forges it only fails in another way."""

RESULT = 3
"""File descriptor for what a called function returned."""

HOME = "/box"
"""A program's directory where it has a root of its own. Not /tmp: a library may lie there."""

_NOTHING = object()
"""Stands for a name that is not bound."""

_STACK = 120 << 20
"""Of the main thread. Linux keeps a gap of 128 MiB free for it below the address of its start."""


@dataclass(frozen=True, slots=True)
class Fence:
    """How this machine's programs are locked in; the same for all programs of one launcher.

    Attributes:
        level: ``namespaces`` or ``rlimits``.
        first_user: Programs run as this user id plus their slot; None keeps the user.
        seccomp: Filter system calls.
        landlock: Confine files by Landlock.
        scratch: Where programs get their own directory at level ``rlimits``.
        library: Directories a program can import from.
        library_fds: Descriptors of ``library``; empty where the programs' user can reach the paths.
        readable_fds: Descriptors of all that Landlock lets a program read.
    """

    level: str
    first_user: int | None
    seccomp: bool
    landlock: bool
    scratch: str
    library: tuple[str, ...] = ()
    library_fds: tuple[int, ...] = ()
    readable_fds: tuple[int, ...] = ()

    @property
    def own_processes(self) -> bool:
        """True if programs see no processes but their own."""
        return self.level != "rlimits"


@dataclass(frozen=True, slots=True)
class Request:
    """One run.

    Attributes:
        slot: Number of the worker, below the number of workers.
        preamble: Run before the program, in the same names.
        function: Name of the function to call, None to run the program as a script.
        arguments: Its arguments.
        nonce: Proves that a result was written by this run.
        seconds: Wall clock.
        cpu_seconds: Processor time of each process.
        memory: Bytes: address space of each process, and resident memory of all together.
        processes: Processes and threads.
        files: Open files.
        output: Bytes of stdout, of stderr, and of a result.
        disk: Bytes of files.
        code_bytes: Length of the program's text, which follows.
        stdin_bytes: Length of its input, which follows that.
    """

    slot: int
    preamble: str
    function: str | None
    arguments: list[Any]
    nonce: str
    seconds: float
    cpu_seconds: int
    memory: int
    processes: int
    files: int
    output: int
    disk: int
    code_bytes: int
    stdin_bytes: int


def become(request: Request, code: str, fence: Fence, home: str) -> None:
    """Lock this process in and run the program. Never returns.

    Descriptors 0 to 3 must be in place.
    """
    status = 1
    try:
        _lock_in(request, fence, home)
        status = _run(request, code, home)
    except MemoryError:
        status = EXIT_MEMORY
    except BaseException as error:  # the program's own way out is _run's business
        with contextlib.suppress(BaseException):
            os.write(2, f"sandbox: {error!r}\n".encode())
    finally:
        os._exit(status)


def _lock_in(request: Request, fence: Fence, home: str) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kept = {*fence.library_fds, *(fence.readable_fds if fence.landlock else ())}
    last = RESULT
    for descriptor in sorted(kept):
        os.closerange(last + 1, descriptor)
        last = descriptor
    os.closerange(last + 1, max(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 12))
    os.chdir(home)
    here = os.open(".", os.O_PATH | os.O_DIRECTORY)
    _limit(request, fence)
    if fence.first_user is not None:
        user = fence.first_user + request.slot
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    else:
        kernel.drop_capabilities()
    kernel.no_new_privileges()
    if fence.landlock:
        kernel.landlock(fence.readable_fds, [here])
    for descriptor in (here, *(kept - {*fence.library_fds})):
        os.close(descriptor)
    kernel.show_to_self()
    # A change of user undoes this, so it comes after.
    kernel.die_with_parent(signal.SIGKILL)
    if fence.seccomp:
        kernel.filter_system_calls(own_signals_only=not fence.own_processes)


def _limit(request: Request, fence: Fence) -> None:
    processes = request.processes
    if fence.first_user is None and not fence.own_processes:
        # The kernel counts all processes of the user, this session's shell and trainer included.
        processes += _threads_of_user()
    limits = {
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_CPU: (request.cpu_seconds, request.cpu_seconds + 1),
        resource.RLIMIT_AS: (request.memory, request.memory),
        resource.RLIMIT_FSIZE: (request.disk, request.disk),
        resource.RLIMIT_NOFILE: (request.files, request.files),
        resource.RLIMIT_NPROC: (processes, processes),
        resource.RLIMIT_MEMLOCK: (0, 0),
        resource.RLIMIT_MSGQUEUE: (0, 0),
        resource.RLIMIT_STACK: (_STACK, _STACK),
    }
    for which, (soft, hard) in limits.items():
        ceiling = resource.getrlimit(which)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(which, (soft, hard))


def _threads_of_user() -> int:
    total, user = 0, os.getuid()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if entry.stat().st_uid == user:
                    total += len(os.listdir(f"/proc/{entry.name}/task"))
    return total


def _run(request: Request, code: str, home: str) -> int:
    names = _fresh_interpreter(home, "__main__" if request.function is None else "solution")
    dumps, write, limit = json.dumps, os.write, request.output
    try:
        if request.preamble:
            exec(compile(request.preamble, "preamble.py", "exec"), names)
        given = names.get(request.function or "", _NOTHING)
        exec(compile(code, "solution.py", "exec"), names)
        if request.function is not None:
            value = _plain(_find(names, request.function, given)(*request.arguments))
            text = dumps({"nonce": request.nonce, "value": value}).encode()
            for start in range(0, min(len(text), limit + 1), 1 << 16):
                write(RESULT, text[start : start + (1 << 16)])
        status = 0
    except SystemExit as stop:
        status = _exit_status(stop)
    except MemoryError:
        return EXIT_MEMORY
    except BaseException as error:
        # Without our own frames: they would tell the reader nothing.
        traceback.print_exception(error.with_traceback(_below(error.__traceback__)), limit=-8)
        status = 1
    return _finish(status)


def _below(where: types.TracebackType | None) -> types.TracebackType | None:
    return where.tb_next if where is not None else None


def _fresh_interpreter(home: str, name: str) -> dict[str, Any]:
    """Names of a new main module; streams on descriptors 0 to 2; nothing left of the launcher."""
    module = types.ModuleType(name)
    for ours in [loaded for loaded in sys.modules if loaded.startswith("reference_trainer")]:
        del sys.modules[ours]
    sys.modules["__main__"] = sys.modules[name] = module
    module.__dict__["__builtins__"] = builtins
    # Names that only the `site` module defines, which this interpreter starts without.
    vars(builtins).update(exit=sys.exit, quit=sys.exit)
    os.environ.update(HOME=home, TMPDIR=home)
    sys.argv = ["solution.py"]
    # These stay open for as long as the process lives.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{name}__", getattr(sys, name))
    return module.__dict__


def _find(names: dict[str, Any], function: str, given: Any) -> Any:
    """The program's own ``function``: a method of its class ``Solution`` if it has one.

    A program without that class must have bound the name itself. What the preamble (or the
    interpreter) already offered under the name is ``given``: a program does not earn a reward for
    it, wherever it is found.
    """
    if "Solution" in names:
        value = getattr(names["Solution"](), function)
    else:
        value = names.get(function, _NOTHING)
    if value is _NOTHING or value is given:
        raise NameError(f"the program defines no function {function!r}")
    return value


def _plain(value: Any) -> Any:
    """Only exact built-in types pass: a subclass could pretend to be equal to everything."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in (list, tuple):
        return [_plain(item) for item in value]
    if kind is dict:
        return {
            key if type(key) is str else str(_plain(key)): _plain(v) for key, v in value.items()
        }
    raise TypeError(f"the function returned a {kind.__name__}; it must return plain data")


def _exit_status(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    with contextlib.suppress(BaseException):
        print(stop.code, file=sys.stderr)
    return 1


def _finish(status: int) -> int:
    """What the interpreter does at its end, but for destructors: threads, atexit, buffers."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except MemoryError:
        return EXIT_MEMORY
    except SystemExit as stop:
        return status or _exit_status(stop)
    except BaseException:
        with contextlib.suppress(BaseException):
            traceback.print_exc(limit=-8)
        return status or 1
    with contextlib.suppress(BaseException):
        sys.stderr.flush()
    return status
