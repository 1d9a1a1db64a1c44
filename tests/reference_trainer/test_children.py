import os
import signal
import threading
import time
from pathlib import Path

import pytest

from reference_trainer import children
from reference_trainer.children import Launch, run_all, termination_interrupts

SCRIPT = """#!/bin/sh
# Called as: <script> -m reference_trainer <what it shall do>
case "$3" in
    talk) echo "first $4"; echo second; exit 3 ;;
    where) echo "$CUDA_VISIBLE_DEVICES"; sleep 0.2 ;;
    wait) echo $$; exec sleep 600 ;;
    stay) trap '' TERM; echo $$; while true; do sleep 0.05; done ;;
esac
"""


@pytest.fixture(autouse=True)
def _a_shell_in_place_of_the_trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(script))
    monkeypatch.setattr(children, "_GRACE_SECONDS", 0.5)


def test_lines_and_exit_codes_keep_their_number() -> None:
    lines: dict[int, list[str]] = {0: [], 1: []}
    ended: dict[int, int] = {}
    codes = run_all(
        [["talk", "a"], ["talk", "b"]],
        launch=Launch(2),
        say=lambda number, line: lines[number].append(line),
        done=lambda number, code: ended.update({number: code}),
    )
    assert codes == [3, 3]
    assert lines == {0: ["first a", "second"], 1: ["first b", "second"]}
    assert ended == {0: 3, 1: 3}


def test_runs_at_the_same_time_have_devices_of_their_own() -> None:
    seen: list[str] = []
    launch = Launch(2, devices=("0,1", "2,3"))
    codes = run_all([["where"]] * 4, launch=launch, say=lambda _, line: seen.append(line))
    assert codes == [0] * 4
    assert sorted(seen[:2]) == ["0,1", "2,3"]
    assert set(seen[2:]) <= {"0,1", "2,3"}


def test_several_processes_are_started_by_torchrun() -> None:
    line = Launch(1, ranks=4).line(["train", "a"])
    assert line[1:] == [
        *("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=4"),
        *("-m", "reference_trainer", "train", "a"),
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_what_runs_and_begins_nothing_else(number: signal.Signals) -> None:
    running: list[int] = []
    both = threading.Event()
    ended: list[int] = []

    def say(_: int, line: str) -> None:
        running.append(int(line))
        if len(running) == 2:
            both.set()

    def interrupt() -> None:
        both.wait(20.0)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt, daemon=True).start()
    before = signal.getsignal(signal.SIGTERM)
    commands = [["wait"], ["stay"], ["wait"], ["wait"]]
    # A process that a shell started in its background ignores SIGINT: it would wait for ever.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), termination_interrupts():
            run_all(commands, launch=Launch(2), say=say, done=lambda one, _: ended.append(one))
    finally:
        signal.signal(signal.SIGINT, inherited)
    assert signal.getsignal(signal.SIGTERM) is before
    assert len(running) == 2, "a process was begun after the interrupt"
    assert ended == [], "a process that was ended did not fail"
    deadline = time.monotonic() + 20.0
    while any(Path(f"/proc/{child}").exists() for child in running):
        assert time.monotonic() < deadline, "a process survived"
        time.sleep(0.01)
