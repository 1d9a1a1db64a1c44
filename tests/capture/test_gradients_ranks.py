"""Two ranks with half of the rows each give what one process with all rows gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gradient_models import GROUPS, ROLES, gram, rows, separate, tiny_model

HERE = Path(__file__).parent
CASES = [
    f"{kind} {way} {store}"
    for kind in ("ddp", "fsdp2")
    for way in ("tap", "ordered")
    for store in ("full", "fold")
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    meeting = f"file://{tmp_path_factory.mktemp('ranks') / 'store'}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    environment["PYTHONPATH"] = f"{HERE.parents[1]}{os.pathsep}{environment.get('PYTHONPATH', '')}"
    workers = [
        subprocess.Popen(
            [sys.executable, str(HERE / "gradient_ranks_worker.py"), str(rank), meeting],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    found = []
    try:
        for worker in workers:
            out, errors = worker.communicate(timeout=240)
            assert worker.returncode == 0, errors[-3000:]
            found.append(json.loads(out.split("RESULT")[1]))
    finally:
        for worker in workers:
            worker.kill()
    return found


@pytest.mark.parametrize("case", CASES)
def test_ranks_equal_one_process(case: str, results: list[dict[str, Any]]) -> None:
    torch.set_num_threads(1)
    first, second = (one[case] for one in results)
    assert first == second
    ((labels, products, relative_error, closure, covered),) = first
    groups = ROLES if "ordered" in case else GROUPS
    assert len(labels) == len(groups.unique())
    expected = gram(separate(tiny_model(torch.float64, r=16), *rows(), groups)).numpy()
    lengths = expected.diagonal() ** 0.5
    off = abs(np.asarray(products) - expected) / lengths[:, None] / lengths[None]
    if "ddp tap" in case:
        assert closure < 1e-7
        assert covered == 1
    else:  # sharded weights, and differences of .grad, which are all of it
        assert closure is covered is None
    if "full" in case:
        assert relative_error == 0
        assert off.max() < 1e-10
    else:
        assert 0 < relative_error < 0.005
        assert off.max() < 5 * 2 * relative_error
