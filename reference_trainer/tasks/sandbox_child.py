"""The sandbox's launcher: a small, clean interpreter that starts one supervisor per program.

``launcher -> supervisor -> program``. The launcher never sees a program or its data, so nothing can
leak from one program to the next; it forks a supervisor for each connection it is handed. The
supervisor (:mod:`reference_trainer.tasks.sandbox_supervisor`) reads the request, starts the program
behind its fence and replies. Both are out of the program's reach, and expected outputs never come
near any of these processes.

Standard library only: this runs in an isolated interpreter.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from reference_trainer.tasks import sandbox_kernel as kernel
from reference_trainer.tasks.sandbox_program import HOME, Fence
from reference_trainer.tasks.sandbox_supervisor import supervise

_PRELOADED = (
    *("array", "bisect", "calendar", "cmath", "collections", "copy", "dataclasses", "datetime"),
    *("decimal", "enum", "fractions", "functools", "heapq", "io", "itertools", "json", "math"),
    *("numbers", "operator", "queue", "random", "re", "statistics", "string", "struct"),
    *("textwrap", "threading", "time", "typing"),
)
"""What competition programs import: loaded once, shared by all programs."""

SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/localtime")
"""What programs may read besides Python's library, where there is a choice."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full")
"""Which devices they may use."""

_LIBRARY_FD = 200


def main(control_fd: int, settings: dict[str, Any]) -> None:
    """Serve until the other end of the control socket is closed."""
    control = socket.socket(fileno=control_fd)
    fence = Fence(**{**settings, "library": tuple(settings["library"])})
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in _PRELOADED:
        importlib.import_module(name)
    try:
        proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
        fence = _prepare(fence)
    except OSError as error:
        control.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
        return
    # Not earlier: a hidden process cannot write the maps of its own user namespace.
    kernel.hide_from_equals()
    # Supervisors report over their own connection; nobody waits for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    control.sendall(json.dumps({"fence": asdict(fence)}).encode() + b"\n")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            break
        if os.fork() == 0:
            control.close()
            supervise(socket.socket(fileno=descriptors[0]), fence, proc)
        for descriptor in descriptors:
            os.close(descriptor)
    if not fence.own_processes:
        shutil.rmtree(fence.scratch, ignore_errors=True)


def _prepare(fence: Fence) -> Fence:
    """Build the part of the fence that all programs share, and find out which parts hold."""
    sys.path[:] = [path for path in fence.library if os.path.isdir(path)]
    if fence.level == "namespaces":
        _enter_namespaces(fence)
    fence = replace(fence, seccomp=fence.seccomp and _works(_try_seccomp))
    fence = replace(fence, landlock=fence.landlock and kernel.landlock_version() > 0)
    if fence.own_processes:
        # The root directory holds nothing that programs may not read.
        return replace(fence, landlock=False)
    user = fence.first_user
    if user is not None:
        os.chmod(fence.scratch, 0o711)
    if user is not None and not _works(lambda: _try_library(user)):
        fence = replace(fence, library_fds=_open_high(sys.path))
        sys.path[:] = [f"/proc/self/fd/{fd}" for fd in fence.library_fds]
        _redirect_packages(dict(zip(fence.library, sys.path, strict=False)))
    if fence.landlock:
        readable = [*SYSTEM, *DEVICES, *fence.library]
        fence = replace(fence, readable_fds=_open_high(readable, start=_LIBRARY_FD + 100))
    return fence


def _works(action: Callable[[], None]) -> bool:
    """True if ``action`` raises nothing in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _try_seccomp() -> None:
    kernel.no_new_privileges()
    kernel.filter_system_calls(own_signals_only=True)
    try:
        socket.socket()
    except PermissionError:
        return
    raise OSError("the filter does not filter")


def _try_library(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    for path in sys.path:
        os.listdir(path)


def _open_high(paths: Sequence[str], start: int = _LIBRARY_FD) -> tuple[int, ...]:
    """Descriptors far above those that a program gets for its own files."""
    opened = []
    for path in paths:
        if os.path.exists(path):
            low = os.open(path, os.O_PATH)
            opened.append(fcntl.fcntl(low, fcntl.F_DUPFD, start))
            os.close(low)
    return tuple(opened)


def _redirect_packages(moved: dict[str, str]) -> None:
    """Let packages that are already loaded find their other modules under the new paths."""
    for module in list(sys.modules.values()):
        for folder in list(getattr(module, "__path__", ())):
            for old, new in moved.items():
                if folder.startswith(old + "/"):
                    module.__path__ = [new + folder[len(old) :]]


def _enter_namespaces(fence: Fence) -> None:
    """Own mounts, network, IPC and host name, with a root directory of read-only system files."""
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
    user, group = os.getuid(), os.getgid()
    if fence.first_user is None:
        kernel.unshare(flags | kernel.CLONE_NEWUSER)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    else:
        kernel.unshare(flags)
    kernel.mount("", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    root = fence.scratch
    kernel.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=1m")
    for path in (*SYSTEM, *fence.library):
        _show(path, root, read_only=True)
    for path in DEVICES:
        _show(path, root, read_only=False)
    os.mkdir(root + HOME, 0o755)
    kernel.enter_root(root)
    kernel.make_read_only("/", recursive=False)


def _show(path: str, root: str, *, read_only: bool) -> None:
    target = root + path
    if os.path.lexists(target) or not os.path.exists(path):
        return
    os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
    if os.path.islink(path) and read_only and os.path.isdir(path):
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.mkdir(target, 0o755)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.mount(os.path.realpath(path), target, None, kernel.MS_BIND | kernel.MS_REC)
    if read_only:
        kernel.make_read_only(target, recursive=True)
