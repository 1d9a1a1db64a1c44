"""Two processes stop at the same step, although only one of them sees why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from roledrift.store.reader import open_run

SCRIPT = Path(__file__).parent / "stop_rank.py"


def two_processes(folder: Path) -> list[dict[str, Any]]:
    outs = [folder / f"{rank}.json" for rank in range(2)]
    processes = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(rank), str(folder), str(out)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
        )
        for rank, out in enumerate(outs)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors.decode()
    return [json.loads(out.read_text()) for out in outs]


def test_both_ranks_stop_where_rank_0_decides(tmp_path: Path) -> None:
    first, second = two_processes(tmp_path)
    assert first["stopped"] is not None
    assert first["stopped"] == second["stopped"]
    assert (first["alerts"], second["alerts"]) == (1, 0), "only rank 0 judges"
    assert first["weight"] == second["weight"] == 3.0 * (first["stopped"] + 1)
    run = open_run(tmp_path / "run")
    assert [alert.step for alert in run.alerts()] == [first["stopped"]]
    assert len(run.segments) == 1, "and only rank 0 writes"
