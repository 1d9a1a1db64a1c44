"""What a worker's watch must not do to its rank. With verl's engines: tests/envs/verl/."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_a_rank_that_cannot_measure_does_not_leave_the_others_waiting(tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    environment.pop("ROLEDRIFT_STRICT", None)
    command = [sys.executable, str(HERE / "verl_rank.py")]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), f"file://{tmp_path / 'meeting'}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        said = [rank.communicate(timeout=60) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    found = [json.loads(out.split("RESULT")[1]) for out, _ in said]
    assert found[0] == ["not measured: some ranks cannot", {}, False, 2.0]
    assert found[1][1:] == [{"worker attach: OutOfMemoryError": 1}, False, 2.0]
    assert found[1][0].startswith("not measured")
