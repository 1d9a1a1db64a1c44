"""Starts the sandbox's launcher: the interpreter, its command line and what it answers."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import sysconfig
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reference_trainer.tasks.sandbox_program import Fence
from roledrift import RoleDriftError

_MODULES = ("sandbox_kernel", "sandbox_program", "sandbox_supervisor", "sandbox_child")
_BOOT = """
import json, sys, types
boot = json.loads(sys.argv.pop())
for name, text in boot["sources"]:
    module = sys.modules[name] = types.ModuleType(name)
    package, _, short = name.rpartition(".")
    if package:
        setattr(sys.modules[package], short, module)
    exec(compile(text, name, "exec"), module.__dict__)
module.main(boot["control"], boot["settings"])
"""
_START_SECONDS = 20.0
USERS_PER_SANDBOX = 256
"""Distance between the ranges of user ids of two sandboxes."""


class SandboxError(RoleDriftError, RuntimeError):
    """The sandbox itself does not work here; says nothing about a program."""


def first_line(control: socket.socket, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The launcher's report on the fence it has built.

    Raises:
        SandboxError: If it could not, or did not answer in time.
    """
    assert process.stderr is not None
    control.settimeout(_START_SECONDS)
    try:
        with control.makefile("rb") as source:
            line = source.readline()
    except OSError as error:
        process.kill()
        line = json.dumps({"error": str(error)}).encode()
    control.settimeout(None)
    answer = json.loads(line) if line else {}
    if "fence" in answer:
        process.stderr.close()
        fence: dict[str, Any] = answer["fence"]
        return fence
    lines = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
    process.stderr.close()
    process.wait()
    raise SandboxError(answer.get("error") or (lines[-1] if lines else "the launcher ended"))


def first_user() -> int | None:
    """Start of a range of user ids that nobody has, so that limits do not mix; None if not root."""
    if os.geteuid() != 0:
        return None
    maps = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    size = next((int(length) for first, _, length in maps if first == "0"), 0)
    if size > 1 << 31:
        return 100_000_000 + secrets.randbelow(7_000_000) * USERS_PER_SANDBOX
    if size >= 60_000:
        return 20_000 + secrets.randbelow(150) * USERS_PER_SANDBOX
    return None


def standard_library() -> tuple[str, ...]:
    """Folders of the standard library and its extension modules, without site-packages."""
    folders = (sysconfig.get_path("stdlib"), sysconfig.get_config_var("DESTSHARED"))
    return tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders if folder))


def launcher_command(fence: Fence, control: int) -> list[str]:
    """Command line of the launcher; its program is part of it, as its files may be out of reach."""
    here = Path(__file__).parent
    package = __name__.rpartition(".")[0]
    sources = [("reference_trainer", ""), (package, "")]
    sources += [
        (f"{package}.{name}", (here / f"{name}.py").read_text("utf-8")) for name in _MODULES
    ]
    boot = {"sources": sources, "control": control, "settings": asdict(fence)}
    interpreter = os.path.realpath(sys.executable)
    return [interpreter, "-s", "-P", "-S", "-B", "-c", _BOOT, json.dumps(boot)]
