"""The parts of the Linux kernel that fence a process in: mounts, Landlock, seccomp, capabilities.

Standard library only, and importable on its own: this runs in the sandbox's own processes, which
load nothing else of this package. Every function raises :class:`OSError` where the kernel refuses.
"""

from __future__ import annotations

import ctypes
import os
import platform
import stat
import struct
from collections.abc import Iterable, Sequence

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x4_0000
_MNT_DETACH = 2

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP = 1, 4, 22
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38

_LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _checked(int(_LIBC.syscall(ctypes.c_long(number), *words)), f"system call {number}")


def _prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    result = _LIBC.prctl(option, ctypes.c_ulong(value), zero, zero, zero)
    _checked(int(result), f"prctl {option}")


def hide_from_equals() -> None:
    """Make ``/proc/self`` and ptrace of this process off limits to processes of the same user."""
    _prctl(_PR_SET_DUMPABLE, 0)


def show_to_self() -> None:
    """Undo :func:`hide_from_equals`, which a change of user implies: else /proc/self is closed."""
    _prctl(_PR_SET_DUMPABLE, 1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ended."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signal: int) -> None:
    """Be sent ``signal`` when the parent ends."""
    _prctl(_PR_SET_PDEATHSIG, signal)


def no_new_privileges() -> None:
    """Make set-uid programs powerless, for good."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Give up every capability (header version 3, two words each of three empty sets)."""
    header = struct.pack("Ii", 0x2008_0522, 0)
    _checked(int(_LIBC.capset(header, b"\0" * 24)), "capset")


def unshare(flags: int) -> None:
    """Leave the namespaces in ``flags`` for fresh ones."""
    _checked(int(_LIBC.unshare(ctypes.c_int(flags))), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Mount."""
    kind_bytes = None if kind is None else kind.encode()
    result = _LIBC.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind_bytes,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _checked(int(result), f"mount {target}")


def make_read_only(path: str, *, recursive: bool) -> None:
    """Make a mount read-only, with what is mounted below it if ``recursive`` (Linux 5.12)."""
    read_only_nosuid = struct.pack("QQQQ", MS_RDONLY | MS_NOSUID, 0, 0, 0)
    at_fdcwd, at_recursive = -100, 0x8000 if recursive else 0
    _syscall(442, at_fdcwd, os.fsencode(path), at_recursive, read_only_nosuid, 32)


def unmount(path: str) -> None:
    """Detach a mount and all below it."""
    _checked(int(_LIBC.umount2(os.fsencode(path), _MNT_DETACH)), f"unmount {path}")


def enter_root(path: str) -> None:
    """Make the mount ``path`` the root directory and detach the old one."""
    numbers = {"x86_64": 155, "aarch64": 41}
    if platform.machine() not in numbers:
        raise OSError(f"pivot_root on {platform.machine()} is not known here")
    os.chdir(path)
    _syscall(numbers[platform.machine()], b".", b".")
    # The old root now lies on top of the new one at "/".
    unmount(".")
    os.chdir("/")


# ---- Landlock -----------------------------------------------------------------------------------

_FS_READ = 1 << 0 | 1 << 2 | 1 << 3
_FS_FILE = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
_FS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}


def landlock_version() -> int:
    """Version of Landlock the kernel offers, 0 if none."""
    try:
        return _syscall(444, None, 0, 1)
    except OSError:
        return 0


def landlock(readable: Iterable[int], writable: Iterable[int]) -> None:
    """Confine this process to the given directories and files, without TCP or signals to others.

    What each version of Landlock knows is used; see ``landlock(7)``. Privileges to gain must have
    been given up before.

    Args:
        readable: File descriptors (``O_PATH`` suffices) of what may be read and executed.
        writable: Of what may be written too.
    """
    version = landlock_version()
    known = _FS_BY_ABI[max(abi for abi in _FS_BY_ABI if abi <= max(version, 1))]
    attributes = struct.pack("QQQ", known, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _syscall(444, attributes, size, 0)
    for descriptors, access in ((readable, _FS_READ), (writable, known)):
        for descriptor in descriptors:
            allowed = access & known
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                allowed &= _FS_FILE
            _syscall(445, ruleset, 1, struct.pack("=Qi", allowed, descriptor), 0)
    _syscall(446, ruleset, 0)
    os.close(ruleset)


# ---- seccomp ------------------------------------------------------------------------------------

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

_DENIED = {
    # A way to the network or to a listening process on this machine. socketpair stays: asyncio
    # needs it.
    "socket": (41, 198),
    "io_uring_setup": (425, 425),
    # Other processes' memory and descriptors.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "tkill": (200, 130),
    # Memory that no resource limit counts.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    # Doors into the kernel that no ordinary program uses.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_by_handle_at": (304, 265),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "mount_setattr": (442, 442),
    # What Landlock leaves open: the attributes of files that belong to the same user.
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    # Other processes' priorities.
    "setpriority": (141, 140),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "ioprio_set": (251, 30),
}
_DENIED_X86 = (90, 92, 94, 132, 235, 261)
"""chmod, chown, lchown, utime, utimes, futimesat: only older machines have them."""

_KILL, _TGKILL, _PRLIMIT, _CLONE, _CLONE3 = (62, 129), (234, 131), (302, 261), (56, 220), (435, 435)

_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW = 0x7FFF_0000
_EPERM, _ENOSYS = 0x0005_0001, 0x0005_0026
_NR_AT, _ARCH_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_NEW_NAMESPACES = 0x7E02_0080


def _instruction(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value)


def _rule(number: int, body: Sequence[bytes]) -> list[bytes]:
    """``body``, which must return, if the system call is ``number``."""
    return [_instruction(_JUMP_EQ, number, 0, len(body)), *body]


def _only_first_argument(number: int, allowed: Sequence[int]) -> list[bytes]:
    """Allow the call only if its first argument is one of ``allowed``."""
    body = [_instruction(_LOAD, _FIRST_ARGUMENT_AT)]
    for value in allowed:
        body += [
            _instruction(_JUMP_EQ, value & 0xFFFF_FFFF, 0, 1),
            _instruction(_RETURN, _ALLOW),
        ]
    return _rule(number, [*body, _instruction(_RETURN, _EPERM)])


def filter_system_calls(*, own_signals_only: bool) -> None:
    """Let dangerous system calls fail with EPERM from now on, in this process and all it starts.

    Args:
        own_signals_only: Also allow signals and resource limits only for this very process and, for
            signals, its process group. Needed where other processes can be seen.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise OSError(f"no table of system calls for {machine}")
    architecture, column = _ARCHITECTURES[machine]
    denied = [numbers[column] for numbers in _DENIED.values()]
    program = [
        _instruction(_LOAD, _ARCH_AT),
        _instruction(_JUMP_EQ, architecture, 1, 0),
        _instruction(_RETURN, _EPERM),
        _instruction(_LOAD, _NR_AT),
    ]
    if machine == "x86_64":
        # The x32 twins of all system calls have numbers from 2**30.
        program += [_instruction(_JUMP_GE, 1 << 30, 0, 1), _instruction(_RETURN, _EPERM)]
        denied += _DENIED_X86
    for number in denied:
        program += _rule(number, [_instruction(_RETURN, _EPERM)])
    # A filter cannot look into clone3's argument struct; libc falls back to clone on ENOSYS.
    program += _rule(_CLONE3[column], [_instruction(_RETURN, _ENOSYS)])
    program += _rule(
        _CLONE[column],
        [
            _instruction(_LOAD, _FIRST_ARGUMENT_AT),
            _instruction(_JUMP_SET, _NEW_NAMESPACES, 0, 1),
            _instruction(_RETURN, _EPERM),
            _instruction(_RETURN, _ALLOW),
        ],
    )
    if own_signals_only:
        own = os.getpid()
        program += _only_first_argument(_KILL[column], (own, 0))
        program += _only_first_argument(_TGKILL[column], (own,))
        program += _only_first_argument(_PRLIMIT[column], (own, 0))
    program.append(_instruction(_RETURN, _ALLOW))
    _install(program)


def _install(program: list[bytes]) -> None:
    code = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    zero = ctypes.c_ulong(0)
    result = _LIBC.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(2), header, zero, zero)
    _checked(int(result), "seccomp")
