# ruff: noqa: E501
"""What the sandbox promises, tried at every level that this machine has."""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from attacks import ATTACKS, Attack

from reference_trainer.tasks.sandbox import (
    LEVELS,
    Limits,
    Sandbox,
    SandboxError,
    default_sandbox,
    run_functional,
    run_program,
)
from reference_trainer.tasks.unit_tests import UnitTest, grade_tests

LIMITS = Limits(seconds=0.8, memory=400 << 20, output=1 << 20, disk=16 << 20)
SECRET = "s3cr3t-0f-the-caller"
MARK = f"roledrift-mark-{os.getpid()}"
REPO = Path(__file__).parents[3]
TESTS = {
    "stdin": [UnitTest("stdin_stdout", input="3\n", output="7391")],
    "functional": [UnitTest("functional", function="solve", arguments=(3,), expected=7391)],
    "library": [
        UnitTest("functional", function="gcd", arguments=(12, 18), expected=6),
        UnitTest("functional", function="sorted", arguments=([2, 1],), expected=[1, 2]),
        UnitTest("functional", function="add", arguments=(2, 3), expected=5),
    ],
}
OUTSIDE = [Path(p) for p in ("/tmp", "/dev/shm", "/var/tmp", "/usr/lib", Path.home(), REPO)]


def _available() -> list[str]:
    found: list[str] = []
    for level in LEVELS:
        try:
            Sandbox(level, workers=1).close()
        except SandboxError:
            continue
        found.append(level)
    return [*found, "rlimits without seccomp and Landlock"]


AVAILABLE = _available()


@pytest.fixture(scope="module", params=AVAILABLE)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    level, _, bare = request.param.partition(" ")
    with Sandbox(level, workers=2, seccomp=not bare, landlock=not bare) as one:
        yield one


@dataclass(frozen=True)
class World:
    """What there is to attack."""

    names: dict[str, str]
    victim: subprocess.Popen[bytes]
    visits: list[str]
    keep: Path

    def fill_in(self, code: str) -> str:
        for name, value in self.names.items():
            code = code.replace(f"@{name}@", value)
        return code


def _marked() -> list[Path]:
    """What a program wrote outside its directory; deleted now."""
    marked = [folder / MARK for folder in OUTSIDE if (folder / MARK).exists()]
    for path in marked:
        path.unlink()
    return marked


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    (folder / "secret").write_text(SECRET)
    (folder / "secret").chmod(0o600)
    keep = folder / "keep"
    keep.mkdir()
    (keep / "file").write_text("kept")
    os.environ["CALLERS_SECRET"] = SECRET
    visits: list[str] = []
    servers = [socket.create_server(("127.0.0.1", 0)), *_unix_servers(folder / "socket")]
    for server in servers:
        threading.Thread(target=_serve, args=(server, visits), daemon=True).start()
    # Started by hand: its environment holds the secret from the start.
    victim = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    names = {
        "PARENT": str(os.getpid()),
        "VICTIM": str(victim.pid),
        "MARK": MARK,
        "REPO": str(REPO),
        "HOME": str(Path.home()),
        "SECRET_FILE": str(folder / "secret"),
        "SECRET": SECRET,
        "KEEP": str(keep),
        "PORT": str(servers[0].getsockname()[1]),
        "SOCKET": str(folder / "socket"),
    }
    yield World(names, victim, visits, keep)
    victim.kill()
    victim.wait()
    for server in servers:
        server.close()
    del os.environ["CALLERS_SECRET"]


def _unix_servers(path: Path) -> list[socket.socket]:
    servers = []
    for name in (str(path), "\0" + MARK):
        server = socket.socket(socket.AF_UNIX)
        server.bind(name)
        server.listen()
        servers.append(server)
    return servers


def _serve(server: socket.socket, visits: list[str]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        visits.append(str(server))
        connection.close()


def _leftovers(sandbox: Sandbox) -> list[str]:
    """Processes of the programs' users; without such users, whatever the launcher has started."""
    user = sandbox.first_user
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                owner = entry.stat().st_uid
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            theirs = user is not None and user <= owner < user + sandbox.workers
            if theirs or (user is None and parent == sandbox.launcher_pid):
                found.append(f"{entry.name} of user {owner}")
    return found


def _wait_until_gone(sandbox: Sandbox) -> None:
    if sandbox.first_user is None and sandbox.protection.level == "bwrap":
        return  # the launcher runs below bubblewrap's own process 1: not ours to find
    deadline = time.monotonic() + 5.0
    while left := _leftovers(sandbox):
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.01)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attack(sandbox: Sandbox, world: World, attack: Attack) -> None:
    if attack.promise and not getattr(sandbox.protection, attack.promise):
        # Nothing to assert, and it might end this very process or change the caller's files.
        return
    code = world.fill_in(attack.code)
    world.visits.clear()
    # Attacks that may run into the limit need not do so slowly; the others get time on a busy machine.
    seconds = (
        0.25 if attack.statuses == {"timeout"} else 0.4 if "timeout" in attack.statuses else 15.0
    )
    limits = dataclasses.replace(LIMITS, seconds=seconds)
    run = sandbox.run(code, stdin="3\n", limits=limits)
    assert run.status in attack.statuses, run
    assert "BREACH" not in run.stdout + run.stderr, run
    assert not _marked()
    assert not world.visits
    assert SECRET not in run.stdout
    assert len(run.stdout) <= LIMITS.output
    assert len(run.stderr) <= 4096
    if attack.graded:
        report = grade_tests(code, TESTS[attack.graded], limits=limits, sandbox=sandbox)
        assert report.passed == 0
        assert report.first_failure is not None
    assert world.victim.poll() is None, "a bystander was killed"
    assert (world.keep / "file").read_text() == "kept"
    _wait_until_gone(sandbox)
    assert sandbox.run("print(6 * 7)").stdout == "42\n", "the next program does not run"


def test_the_suite_has_fifty_attacks_and_the_floor() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 50
    print("levels tested here:", AVAILABLE)
    assert "rlimits" in AVAILABLE


def test_attacks_succeed_where_nothing_is_promised_against_them(world: World) -> None:
    with Sandbox("rlimits", workers=1, seccomp=False, landlock=False) as bare:
        assert not bare.protection.network
        assert not bare.protection.writes
        for attack in ATTACKS:
            if attack.name in ("connect", "connect to an abstract Unix socket"):
                run = bare.run(world.fill_in(attack.code), limits=LIMITS)
                assert "BREACH" in run.stdout, attack.name
            elif attack.name == "write to the system's temporary folder":
                bare.run(world.fill_in(attack.code), limits=LIMITS)
                assert _marked() == [Path("/tmp") / MARK]


def test_an_ordinary_program(sandbox: Sandbox) -> None:
    code = """
import collections, decimal, fractions, hashlib, heapq, json, json.tool, os, tempfile, threading, zlib
import xml.etree.ElementTree
threading.stack_size(1 << 26)
out = []
worker = threading.Thread(target=lambda: out.append(sum(map(int, input().split()))))
worker.start(); worker.join()
with tempfile.TemporaryFile() as file: file.write(b"x")
open("here.txt", "w").write("é")
print(out[0], open("here.txt").read(), sorted(os.listdir(".")), __name__)
"""
    run = run_program(code, stdin="1 2 3\n", sandbox=sandbox)
    assert (run.status, run.stderr) == ("ok", "")
    assert run.stdout == "6 é ['here.txt'] __main__\n"
    assert run.level == sandbox.protection.level


def test_statuses_tell_what_happened(sandbox: Sandbox) -> None:
    assert run_program("raise ValueError('why')", sandbox=sandbox).status == "error"
    assert "why" in run_program("raise ValueError('why')", sandbox=sandbox).stderr
    assert run_program("import sys; sys.exit(3)", sandbox=sandbox).status == "error"
    assert run_program("import sys; sys.exit()", sandbox=sandbox).status == "ok"
    assert run_program("def (", sandbox=sandbox).status == "error"
    assert run_program("", sandbox=sandbox).status == "ok"


def test_a_program_may_leave_as_an_interpreter_lets_it(sandbox: Sandbox) -> None:
    """``exit`` and ``quit`` come from the module ``site``, without which programs start."""
    for way in ("exit()", "quit()", "exit(0)", "import sys\nsys.exit()"):
        run = sandbox.run(f"print(1)\n{way}\nprint(2)")
        assert (run.status, run.stdout) == ("ok", "1\n"), way
    assert sandbox.run("exit(3)").status == "error"


def test_the_environment_is_clean(sandbox: Sandbox) -> None:
    run = run_program("import os; print(sorted(os.environ))", sandbox=sandbox)
    names = set(eval(run.stdout))
    expected = {"PATH", "LANG", "PYTHONHASHSEED", "MALLOC_ARENA_MAX", "HOME", "TMPDIR"}
    assert expected <= names <= expected | {"PWD", "LC_CTYPE"}


def test_programs_see_nothing_of_earlier_ones(sandbox: Sandbox) -> None:
    run_program("open('left', 'w').write('x'); marker = 'a marker in memory'", sandbox=sandbox)
    search = (
        "import gc, os\nprint(os.listdir('.'))\n"
        "print('a mark' + 'er in memory' in [v for o in gc.get_objects() if type(o) is dict for v in o.values()"
        " if type(v) is str])"
    )
    assert run_program(search, sandbox=sandbox).stdout == "[]\nFalse\n"


def test_sets_are_ordered_alike_in_every_run(sandbox: Sandbox) -> None:
    code = "print(list({'a', 'b', 'c', 'd', 'e', 'f', 'g'}))"
    assert len({run_program(code, sandbox=sandbox).stdout for _ in range(3)}) == 1


def test_large_input_and_output_pass(sandbox: Sandbox) -> None:
    text = "x" * (3 << 20)
    run = run_program("print(input(), end='')", stdin=text, sandbox=sandbox)
    assert run.stdout == text


def test_functions_and_methods_are_called(sandbox: Sandbox) -> None:
    plain = run_functional(
        "def f(a, b): return {'sum': (a + b, None)}", "f", 1, 2.5, sandbox=sandbox
    )
    assert plain.returned
    assert plain.value == {"sum": [3.5, None]}
    method = run_functional(
        "class Solution:\n    def f(self, a: List[int]): return a[::-1]",
        "f",
        [1, 2],
        preamble="from typing import List",
        sandbox=sandbox,
    )
    assert method.value == [2, 1]
    assert not run_functional("x = 1", "f", sandbox=sandbox).returned
    assert not run_functional("def f(): return {1, 2}", "f", sandbox=sandbox).returned


def test_a_folder_of_packages_can_be_added(tmp_path: Path) -> None:
    # Not below pytest's own folder, which other users may not enter.
    folder = Path("/tmp") / MARK / "packages"
    folder.mkdir(parents=True)
    try:
        (folder / "extra.py").write_text("VALUE = 5\n")
        for level in LEVELS:
            if level not in AVAILABLE:
                continue
            with Sandbox(level, workers=1, library=[folder]) as one:
                run = one.run("import extra; print(extra.VALUE)")
                assert run.stdout == "5\n", (level, run)
    finally:
        shutil.rmtree(folder.parent)


def test_threads_share_a_sandbox(sandbox: Sandbox) -> None:
    outputs: dict[int, str] = {}

    def work(number: int) -> None:
        outputs[number] = sandbox.run(f"import time; time.sleep(0.02); print({number})").stdout

    threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {n: f"{n}\n" for n in range(12)}


def test_programs_end_with_the_sandbox() -> None:
    one = Sandbox("rlimits", workers=1)
    runner = threading.Thread(target=lambda: _quietly(one))
    runner.start()
    time.sleep(0.2)
    launcher = one.launcher_pid
    one.close()
    runner.join()
    assert not Path(f"/proc/{launcher}").exists()


def _quietly(sandbox: Sandbox) -> None:
    sandbox.run("import time; time.sleep(0.5)", limits=dataclasses.replace(LIMITS, seconds=0.6))


def test_the_best_level_is_taken_and_a_closed_sandbox_says_so() -> None:
    assert default_sandbox().protection.level == AVAILABLE[0]
    assert run_program("print(1)").stdout == "1\n"
    one = Sandbox("rlimits", workers=1)
    one.close()
    with pytest.raises(SandboxError, match="has ended"):
        one.run("print(1)")


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(SandboxError, match="workers"):
        Sandbox(workers=1000)
