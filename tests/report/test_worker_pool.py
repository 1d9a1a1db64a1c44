from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from roledrift.report.worker_pool import preload, processes, start_context


def test_workers_are_fresh_processes() -> None:
    assert processes() >= 1
    assert start_context().get_start_method() in ("forkserver", "spawn")


def test_workers_can_be_called_in_before_they_are_needed() -> None:
    preload()
    preload()
    with start_context().Pool(1) as pool:
        assert pool.apply(processes) >= 1


_COMMAND = """
import os, time
from concurrent.futures import ProcessPoolExecutor
from roledrift.report.worker_pool import end_with_parent, start_context
if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=start_context(), initializer=end_with_parent) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        time.sleep(60)
"""


def test_workers_of_a_killed_command_leave(tmp_path: Path) -> None:
    script = tmp_path / "command.py"
    script.write_text(_COMMAND)
    running = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    worker = int(running.stdout.readline())
    running.kill()
    running.wait()
    for _ in range(200):
        if _is_gone(worker):
            return
        time.sleep(0.05)
    raise AssertionError("the worker is still there")


def _is_gone(process: int) -> bool:
    try:
        # Nobody may be there to fetch what is left of it.
        return "\nState:\tZ" in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return True
