from __future__ import annotations

import multiprocessing

from roledrift.report.crew import call_in, fresh, processes


def test_workers_are_fresh_processes() -> None:
    assert processes() >= 1
    assert fresh().get_start_method() in ("forkserver", "spawn")


def test_calling_in_twice_is_no_harm() -> None:
    call_in()
    call_in()
    with fresh().Pool(1) as pool:
        assert pool.apply(multiprocessing.current_process().is_alive)
