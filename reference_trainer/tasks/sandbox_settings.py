"""How a run grades programs: the sandbox it asks for, and the least that it accepts."""

from __future__ import annotations

import atexit
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from reference_trainer.errors import SettingsError
from reference_trainer.tasks.protection import Floor, shortfall
from reference_trainer.tasks.sandbox import Limits, Sandbox, default_sandbox

SITE_PACKAGES = "site-packages"


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """Where the programs of the tasks ``code`` and ``deepcoder`` run.

    Attributes:
        floor: The least protection; a run that would grade below it does not start.
            ``namespaces``: programs have a view of files, processes and network of their own.
            ``confined``: or they cannot reach the network, write outside their directory, read
            private files or end other processes, by Landlock, seccomp and a user of their own.
            ``rlimits``: or there are only limits on time and memory.
        workers: Programs at a time; 0 = one per CPU. A program that runs into its time limit
            keeps one of them.
        seconds: Wall clock of one test.
        memory_gib: Memory of one test in GiB.
        library: Folders that programs can import from besides the standard library;
            ``site-packages`` is the one that the trainer's own packages are in.
    """

    floor: Floor = "confined"
    workers: int = 0
    seconds: float = 6.0
    memory_gib: float = 2.0
    library: tuple[str, ...] = ()

    @property
    def limits(self) -> Limits:
        """Limits of one test."""
        return Limits(seconds=self.seconds, memory=int(self.memory_gib * 2**30))


def problems(settings: SandboxSettings) -> list[str]:
    """What is wrong with ``settings``."""
    wrong = []
    if settings.workers < 0:
        wrong.append(f"sandbox.workers must be 0 or more, got {settings.workers}")
    if min(settings.seconds, settings.memory_gib) <= 0.0:
        wrong.append("sandbox.seconds and sandbox.memory_gib must be greater than 0")
    return wrong + [
        f"sandbox.library: there is no folder {folder}; name folders that hold packages, or "
        f"{SITE_PACKAGES!r}"
        for folder in settings.library
        if folder != SITE_PACKAGES and not Path(folder).is_dir()
    ]


def open_sandbox(settings: SandboxSettings) -> Sandbox:
    """The sandbox of this process with these settings, started on first use.

    Raises:
        SettingsError: If its protection is below ``settings.floor``.
        SandboxError: If no sandbox works here.
    """
    sandbox = _started(settings.workers, settings.library)
    if short := shortfall(sandbox.protection, settings.floor):
        raise SettingsError(short)
    return sandbox


@cache
def _started(workers: int, library: tuple[str, ...]) -> Sandbox:
    if not workers and not library:
        return default_sandbox()
    own = sysconfig.get_path("purelib")
    folders = [own if folder == SITE_PACKAGES else folder for folder in library]
    sandbox = Sandbox(workers=workers or None, library=folders)
    atexit.register(sandbox.close)
    return sandbox
