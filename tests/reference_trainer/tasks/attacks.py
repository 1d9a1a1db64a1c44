# ruff: noqa: E501
"""Programs that try to get out, to outlive their time, to eat the machine, or to cheat.

A program prints BREACH when it has reached something that it must not reach. ``@NAME@`` is replaced by
what the test has set up: see ``test_sandbox.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Promise = Literal["", "network", "writes", "reads", "signals"]

ANY = frozenset({"ok", "error", "timeout", "memory", "output", "killed"})


@dataclass(frozen=True, slots=True)
class Attack:
    """One program and what must hold, besides: nothing survives, and the next program runs.

    Attributes:
        name: What it tries.
        code: The program.
        statuses: How the run may end.
        promise: What must be in force for BREACH to be impossible; empty for always.
        graded: Also grade it by such tests; it must pass none. ``library``: the tests ask for functions
            that the standard library has.
    """

    name: str
    code: str
    statuses: frozenset[str] = ANY
    promise: Promise = ""
    graded: Literal["", "stdin", "functional", "library"] = ""


def _only(*statuses: str) -> frozenset[str]:
    return frozenset(statuses)


_PROCESSES = [
    Attack(
        "fork bomb",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        _only("timeout", "memory"),
    ),
    Attack(
        "fork bomb whose parents exit at once",
        "import os\nwhile True:\n    try:\n        if os.fork(): os._exit(0)\n    except OSError: pass",
    ),
    Attack(
        "thread bomb",
        "import threading, time\nn = 0\ntry:\n    while n < 500:\n"
        "        threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); n += 1\n"
        "except RuntimeError: pass\nprint('BREACH' if n > 200 else 'held')",
    ),
    Attack(
        "daemon by double fork and setsid",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        for fd in range(3): os.close(fd)\n        time.sleep(600)\n    os._exit(0)",
        _only("ok"),
    ),
    Attack(
        "daemon that keeps the pipes open",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)",
        _only("ok"),
    ),
    Attack(
        "daemon that ignores every signal",
        "import os, signal, time\nif os.fork() == 0:\n    os.setsid()\n    for s in range(1, 65):\n"
        "        try: signal.signal(s, signal.SIG_IGN)\n        except (OSError, ValueError): pass\n    time.sleep(600)",
        _only("ok"),
    ),
    Attack(
        "zombie children",
        "import os\nfor _ in range(20):\n    if os.fork() == 0: os._exit(0)",
        _only("ok"),
    ),
    Attack(
        "own subreaper that leaves grandchildren",
        "import ctypes, os, time\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        "if os.fork() == 0:\n    if os.fork() == 0: time.sleep(600)\n    os._exit(0)",
        _only("ok"),
    ),
    Attack(
        "kill the parent",
        "import os\nos.kill(os.getppid() or 1, 9)\nprint('still here')",
        ANY,
        "signals",
    ),
    Attack(
        "kill the caller",
        "import os\nos.kill(@PARENT@, 9)\nprint('BREACH')",
        _only("error"),
        "signals",
    ),
    Attack(
        "kill a bystander",
        "import os\nos.kill(@VICTIM@, 9)\nprint('BREACH')",
        _only("error"),
        "signals",
    ),
    Attack(
        "kill the caller's process group",
        "import os\nos.killpg(os.getpgid(@PARENT@), 9)\nprint('BREACH')",
        _only("error"),
        "signals",
    ),
    Attack("kill everybody", "import os\nos.kill(-1, 9)\nprint('done')", ANY, "signals"),
    Attack("kill the own process group", "import os\nos.killpg(0, 9)", _only("killed")),
    Attack("kill itself", "import os\nos.kill(os.getpid(), 9)", _only("killed")),
    Attack("abort", "import os\nos.abort()", _only("killed")),
    Attack("crash the interpreter", "import ctypes\nctypes.string_at(0)", _only("killed")),
    Attack(
        "ptrace a bystander",
        "import ctypes\nif ctypes.CDLL(None).ptrace(16, @VICTIM@, 0, 0) == 0: print('BREACH')",
        _only("ok"),
        "reads",
    ),
    Attack(
        "read the caller's memory",
        "open('/proc/@PARENT@/mem', 'rb').read(1)\nprint('BREACH')",
        _only("error"),
        "reads",
    ),
    Attack(
        "join the caller's namespaces",
        "import ctypes, os\nfd = os.open('/proc/1/ns/net', os.O_RDONLY)\n"
        "if ctypes.CDLL(None).setns(fd, 0) == 0: print('BREACH')",
        _only("ok", "error"),
    ),
    Attack(
        "a user namespace of its own, to mount",
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.unshare(0x10020000)\n"
        "if libc.mount(b'none', b'/', None, 0x44000, None) == 0: print('BREACH')",
        _only("ok"),
        "network",
    ),
    Attack(
        "become root again", "import os\nos.setuid(0)\nprint('BREACH')", _only("error"), "signals"
    ),
    Attack("chroot", "import os\nos.chroot('.')\nprint('BREACH')", _only("error")),
    Attack(
        "raise its own limits",
        "import resource as r\nfor w in (r.RLIMIT_NPROC, r.RLIMIT_AS, r.RLIMIT_CPU):\n"
        "    s, h = r.getrlimit(w)\n    try: r.setrlimit(w, (h + 1, h + 1))\n    except (ValueError, OSError): continue\n"
        "    print('BREACH')",
        _only("ok"),
    ),
]

_TIME = [
    Attack("sleep forever", "import time\ntime.sleep(1e6)", _only("timeout")),
    Attack("busy loop", "while True: pass", _only("timeout")),
    Attack(
        "ignore SIGTERM and SIGXCPU",
        "import signal\nfor s in (signal.SIGTERM, signal.SIGXCPU, signal.SIGALRM, signal.SIGINT):\n"
        "    signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
        _only("timeout"),
    ),
    Attack(
        "infinite loop in __del__",
        "class A:\n    def __del__(self):\n        while True: pass\na = A()\ndel a",
        _only("timeout"),
    ),
    Attack(
        "infinite loop at exit",
        "import atexit\ndef f():\n    while True: pass\natexit.register(f)",
        _only("timeout"),
    ),
    Attack(
        "catch every exception forever",
        "import time\nwhile True:\n    try: time.sleep(1)\n    except BaseException: pass",
        _only("timeout"),
    ),
    Attack(
        "uninterruptible big integers",
        "print(len(str(7 ** (7 ** 9))))",
        _only("timeout", "memory", "error"),
    ),
    Attack(
        "catastrophic regular expression",
        "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')",
        _only("timeout"),
    ),
    Attack(
        "a thread that does not end",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()",
        _only("timeout"),
    ),
    Attack(
        "stop itself", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", _only("timeout")
    ),
    Attack(
        "wait for input that never comes",
        "import os\nr, w = os.pipe()\nos.read(r, 1)",
        _only("timeout"),
    ),
]

_RESOURCES = [
    Attack("memory bomb", "x = []\nwhile True: x.append(bytearray(1 << 24))", _only("memory")),
    Attack("one huge allocation", "bytearray(1 << 40)", _only("memory")),
    Attack(
        "memory bomb in children",
        "import os, time\nfor _ in range(12):\n    if os.fork() == 0: break\n"
        "x = bytearray(b'1' * (1 << 27))\ntime.sleep(60)",
        _only("memory", "timeout"),
    ),
    Attack(
        "huge recursion",
        "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(n): return f(n + 1) + 1\nf(0)",
        _only("memory", "killed", "error", "timeout"),
    ),
    Attack(
        "deep recursion in C",
        "x = []\nfor _ in range(10 ** 6): x = [x]\nrepr(x)",
        _only("error", "killed", "memory"),
    ),
    Attack("parser bomb", "eval('(' * 10 ** 5)", _only("error", "memory")),
    Attack("endless output", "while True: print('x' * 1000)", _only("output")),
    Attack(
        "endless error output",
        "import sys\nwhile True: sys.stderr.write('x' * 1000)",
        _only("output"),
    ),
    Attack("a gigabyte in one string", "print('x' * (1 << 30))", _only("output", "memory")),
    Attack(
        "output that is not UTF-8", "import os\nos.write(1, bytes(range(256)) * 10)", _only("ok")
    ),
    Attack("NUL bytes", "print('\\0' * 1000)", _only("ok"), graded="stdin"),
    Attack(
        "fill the disk with one file",
        "f = open('f', 'wb')\nwhile True: f.write(bytes(1 << 20))",
        _only("error", "output", "killed"),
    ),
    Attack(
        "fill the disk with many files",
        "i = 0\nwhile True:\n    open(f'f{i}', 'wb').write(bytes(1 << 20)); i += 1",
        _only("error", "output", "timeout"),
    ),
    Attack(
        "use up the inodes",
        "i = 0\nwhile True:\n    open(f'f{i}', 'wb').close(); i += 1",
        _only("error", "output", "timeout"),
    ),
    Attack(
        "directories deeper than a path may be, for a while",
        "import os, time\nfor _ in range(1500):\n    os.mkdir('d'); os.chdir('d')\nopen('f', 'w').close()\ntime.sleep(60)",
        frozenset({"timeout", "output", "error"}),
    ),
    Attack(
        "directories deeper than a path may be",
        "import os\nfor _ in range(3000):\n    os.mkdir('d' * 50); os.chdir('d' * 50)",
        ANY,
    ),
    Attack(
        "a directory nobody may delete",
        "import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').close()\ntry: os.chmod('a', 0)\nexcept OSError: pass",
        _only("ok"),
    ),
    Attack(
        "use up the file descriptors",
        "import os\nn = 0\ntry:\n    while True: os.open('/dev/null', 0); n += 1\nexcept OSError: print('BREACH' if n > 200 else n)",
        _only("ok"),
    ),
    Attack("dump core", "import os, resource\nos.abort()", _only("killed")),
    Attack(
        "many priorities",
        "import os\ntry: os.nice(-10)\nexcept OSError: pass\nelse: print('BREACH')",
        _only("ok"),
    ),
]

_FILES = [
    Attack(
        "write to the system's temporary folder",
        "open('/tmp/@MARK@', 'w').close()",
        _only("ok", "error"),
        "writes",
    ),
    Attack(
        "write to /dev/shm and /var/tmp",
        "for d in ('/dev/shm', '/var/tmp'):\n    try: open(d + '/@MARK@', 'w').close()\n    except OSError: pass",
        _only("ok"),
        "writes",
    ),
    Attack(
        "write to the repository", "open('@REPO@/@MARK@', 'w').close()", _only("error"), "reads"
    ),
    Attack(
        "write to the home folder", "open('@HOME@/@MARK@', 'w').close()", _only("error"), "reads"
    ),
    Attack(
        "write to the system",
        "open('/usr/lib/@MARK@', 'w').close()\nprint('BREACH')",
        _only("error"),
        "reads",
    ),
    Attack(
        "change the standard library",
        "import heapq\nopen(heapq.__file__, 'a')\nprint('BREACH')",
        _only("error"),
        "reads",
    ),
    Attack(
        "read a private file",
        "print('BREACH' + open('@SECRET_FILE@').read())",
        _only("error"),
        "reads",
    ),
    Attack(
        "read it through a symlink",
        "import os\nos.symlink('@SECRET_FILE@', 'l')\nprint('BREACH' + open('l').read())",
        _only("error"),
        "reads",
    ),
    Attack(
        "read it through a hard link",
        "import os\nos.link('@SECRET_FILE@', 'l')\nprint('BREACH' + open('l').read())",
        _only("error"),
        "reads",
    ),
    Attack(
        "leave a symlink for whoever cleans up",
        "import os\nos.symlink('@KEEP@', 'dir'); os.symlink('@KEEP@/file', 'file')",
        _only("ok"),
    ),
    Attack(
        "read /etc/shadow", "print('BREACH' + open('/etc/shadow').read())", _only("error"), "reads"
    ),
    Attack(
        "list /root",
        "import os\nif set(os.listdir('/root')) - {'.pyenv'}: print('BREACH')",
        ANY,
        "reads",
    ),
    Attack(
        "climb out of the library's folder",
        "import os\nfor n in range(3, 1024):\n    try: f = os.open('../' * 12 + '@SECRET_FILE@'.lstrip('/'), 0, dir_fd=n)\n"
        "    except OSError: continue\n    print('BREACH', os.read(f, 99))",
        _only("ok"),
        "reads",
    ),
    Attack(
        "use an inherited file descriptor",
        "import os\nfor n in range(4, 1024):\n    try: os.write(n, b'x')\n    except OSError: continue\n    print('BREACH', n)",
        _only("ok"),
    ),
    Attack(
        "run a set-uid program",
        "import subprocess\nr = subprocess.run(['su', '-c', 'id'], capture_output=True, stdin=-3)\nif b'uid=0' in r.stdout: print('BREACH')",
        ANY,
    ),
]

_SECRETS = [
    Attack(
        "read its environment",
        "import os\nif '@SECRET@' in str(os.environ): print('BREACH')",
        _only("ok"),
    ),
    Attack(
        "read its environment from /proc",
        "import sys\nif b'@SECRET@' in open('/proc/self/environ', 'rb').read(): print('BREACH')",
        _only("ok", "error"),
    ),
    Attack(
        "read everybody's environment",
        "import glob\nfor p in glob.glob('/proc/*/environ'):\n    try:\n        if b'@SECRET@' in open(p, 'rb').read(): print('BREACH', p)\n"
        "    except OSError: pass",
        _only("ok"),
        "reads",
    ),
    Attack(
        "read everybody's descriptors",
        "import glob, os\nfor p in glob.glob('/proc/@PARENT@/fd/*') + glob.glob(f'/proc/{os.getppid()}/fd/*'):\n"
        "    try: open(p, 'wb').write(b'x'); print('BREACH', p)\n    except OSError: pass",
        _only("ok"),
        "reads",
    ),
    Attack(
        "search its own memory for the caller's secret",
        "import gc, sys\nfor o in gc.get_objects():\n    if type(o) is dict:\n        for k, v in list(o.items()):\n"
        "            if type(v) is str and v == '@SECRET@'[:9] + '@SECRET@'[9:] and 'co_' not in str(k): print('BREACH')\n",
        _only("ok"),
    ),
]

_NETWORK = [
    Attack(
        "connect",
        "import socket\nsocket.create_connection(('127.0.0.1', @PORT@), 0.3).send(b'x')\nprint('BREACH')",
        _only("error"),
        "network",
    ),
    Attack(
        "send a datagram",
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.sendto(b'x', ('127.0.0.1', @PORT@))\ns.sendto(b'x', ('8.8.8.8', 53))\nprint('BREACH')",
        _only("error"),
        "network",
    ),
    Attack(
        "look up a name",
        "import socket\nsocket.getaddrinfo('example.com', 80)\nprint('BREACH')",
        _only("error", "timeout"),
        "network",
    ),
    Attack(
        "listen for the machine",
        "import socket\ns = socket.socket()\ns.bind(('0.0.0.0', 0))\ns.listen()\nprint('listening')",
        _only("ok", "error"),
        "network",
    ),
    Attack(
        "connect to a Unix socket",
        "import socket\nsocket.socket(socket.AF_UNIX).connect('@SOCKET@')\nprint('BREACH')",
        _only("error"),
        "network",
    ),
    Attack(
        "connect to an abstract Unix socket",
        "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0@MARK@')\nprint('BREACH')",
        _only("error"),
        "network",
    ),
]

_SOLVER = "class Solution:\n    def solve(self, n):\n        "
_FORGERY = [
    Attack(
        "print a verdict",
        'print(\'PASSED\'); print(\'{"passed": 1, "total": 1, "status": "ok"}\')',
        _only("ok"),
        graded="stdin",
    ),
    Attack("exit before the tests", "import sys\nsys.exit(0)", _only("ok"), graded="stdin"),
    Attack("exit before the function is called", "import sys\nsys.exit(0)", graded="functional"),
    Attack("os._exit(0)", "import os\nos._exit(0)", graded="functional"),
    Attack(
        "raise SystemExit inside the function", _SOLVER + "raise SystemExit(0)", graded="functional"
    ),
    Attack("raise KeyboardInterrupt", "raise KeyboardInterrupt", _only("error"), graded="stdin"),
    Attack(
        "print verdicts at exit",
        "import atexit\natexit.register(print, 'PASSED ok True 1')",
        _only("ok"),
        graded="stdin",
    ),
    Attack(
        "an object equal to everything",
        "class E:\n    def __eq__(self, o): return True\n    __hash__ = None\n"
        + _SOLVER
        + "return E()",
        graded="functional",
    ),
    Attack(
        "an int equal to everything",
        "class E(int):\n    def __eq__(self, o): return True\n" + _SOLVER + "return E(1)",
        graded="functional",
    ),
    Attack(
        "a str equal to everything",
        "class E(str):\n    def __eq__(self, o): return True\n" + _SOLVER + "return [E('')]",
        graded="functional",
    ),
    Attack(
        "an object with a pickling trick",
        "class E:\n    def __reduce__(self): return (print, ('BREACH',))\n"
        + _SOLVER
        + "return E()",
        graded="functional",
    ),
    Attack(
        "replace json.dumps",
        'import json\njson.dumps = lambda *a, **k: \'{"value": true, "passed": true}\'\n'
        + _SOLVER
        + "return 0",
        graded="functional",
    ),
    Attack(
        "write to the result's descriptor",
        'import os\nfor n in range(3, 64):\n    try: os.write(n, b\'{"nonce": "", "value": 7391}\\n\')\n    except OSError: pass\n'
        + _SOLVER
        + "return 0",
        graded="functional",
    ),
    Attack(
        "deeply nested JSON",
        "import os\nos.write(3, b'[' * 500000)\nos._exit(0)",
        graded="functional",
    ),
    Attack(
        "deeply nested result",
        _SOLVER + "x = []\n        for _ in range(100000): x = [x]\n        return x",
        graded="functional",
    ),
    Attack(
        "result with itself inside",
        _SOLVER + "x = []\n        x.append(x)\n        return x",
        graded="functional",
    ),
    Attack("huge integer as result", _SOLVER + "return 10 ** 5000", graded="functional"),
    Attack(
        "change the builtins",
        "import builtins, sys\nbuiltins.all = lambda *a: True\nbuiltins.print = lambda *a: sys.stdout.write('True')\nfor m in list(sys.modules.values()):\n    for k in ('same_output', 'grade', 'check', '_reply'): setattr(m, k, lambda *a: True)",
        graded="stdin",
    ),
    Attack("close every descriptor", "import os\nos.closerange(0, 4096)", graded="stdin"),
    Attack(
        "look for the expected output",
        "import gc, sys\nprint(''.join(str(o) for o in gc.get_objects() if type(o) in (list, tuple) and len(str(o)[:50]) < 40)[:5000])",
        graded="stdin",
    ),
    Attack(
        "forge the exit status of a memory error",
        "import os\nos._exit(86)",
        _only("memory"),
        graded="stdin",
    ),
    Attack(
        "signal handlers that exit well",
        "import os, signal, sys\nfor s in (signal.SIGTERM, signal.SIGXCPU): signal.signal(s, lambda *a: os._exit(0))\nwhile True: pass",
        _only("timeout"),
        graded="stdin",
    ),
]

_WITHOUT_AN_ANSWER = [
    Attack("an empty program", "pass", _only("ok"), graded="library"),
    Attack(
        "import everything",
        "from math import *\nfrom operator import *\nfrom statistics import *\nfrom builtins import *",
        _only("ok"),
        graded="library",
    ),
    Attack(
        "hand the library's functions on",
        "import builtins, math\ngcd, sorted = math.gcd, builtins.sorted\nfrom operator import add",
        _only("ok"),
        graded="library",
    ),
    Attack(
        "a module instead of a solution",
        "import math, operator, builtins\nclass Solution:\n    def __new__(cls): return math\n",
        _only("ok"),
        graded="library",
    ),
    Attack(
        "a solution with the library's functions as attributes",
        "import math\nclass Solution:\n    gcd = staticmethod(math.gcd)\n    sorted = staticmethod(sorted)",
        _only("ok"),
        graded="library",
    ),
    Attack("an empty solution", "class Solution: pass", _only("ok"), graded="library"),
]

ATTACKS = (
    *(*_PROCESSES, *_TIME, *_RESOURCES, *_FILES, *_SECRETS, *_NETWORK, *_FORGERY),
    *_WITHOUT_AN_ANSWER,
)
