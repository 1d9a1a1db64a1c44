"""The worker processes that share the work on a folder of runs.

This module imports little, so that the workers can start early.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import os
import threading

_NEEDED = ("__main__", "roledrift.report.folder", "roledrift.report.html", "pyarrow.parquet")


def start_context() -> multiprocessing.context.BaseContext:
    """Choose how workers start: never by forking a process that has threads, which can hang.

    Where they can be forked from a process that only imported what is needed, that is paid once.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    start = multiprocessing.get_context("forkserver")
    start.set_forkserver_preload(list(_NEEDED))
    return start


def preload() -> None:
    """Start the fork server early, so that its imports overlap with ours."""
    if start_context().get_start_method() == "forkserver":
        from multiprocessing.forkserver import ensure_running

        ensure_running()


def end_with_parent() -> None:
    """Exit when the parent process dies: a worker would otherwise wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


def processes() -> int:
    """Count the processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1
