from __future__ import annotations

from roledrift.report.crew import call_in, fresh, processes


def test_workers_are_fresh_processes() -> None:
    assert processes() >= 1
    assert fresh().get_start_method() in ("forkserver", "spawn")


def test_workers_can_be_called_in_before_they_are_needed() -> None:
    call_in()
    call_in()
    with fresh().Pool(1) as pool:
        assert pool.apply(processes) >= 1
