"""Several processes measure what one does, although some never see a role, or any row."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path

import pytest

from roledrift.capture.ranks import TorchReducer
from roledrift.errors import AttachError
from roledrift.sums import Key

SCRIPT = Path(__file__).parent / "rank.py"


def single_process():
    spec = importlib.util.spec_from_file_location("rank", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.measured([0, 1])


def several_processes(folder, count):
    outs = [folder / f"{rank}.pickle" for rank in range(count)]
    processes = [
        subprocess.Popen(
            [sys.executable, SCRIPT, str(rank), str(count), folder / "meeting", out],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
        )
        for rank, out in enumerate(outs)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors.decode()
    return [pickle.loads(out.read_bytes()) for out in outs]


@pytest.mark.parametrize("count", [2, 3])
def test_ranks_add_up_to_one_process(tmp_path, count):
    first, *others = several_processes(tmp_path, count)
    assert [one["first"] for one in (first, *others)] == [True] + [False] * len(others)
    assert all(one["sums"] == first["sums"] for one in others)
    expected = single_process()
    assert Key("aggregator", "old.chi2") in expected
    assert Key("generator/1", "length") in expected
    assert set(first["sums"]) == set(expected)
    for key, value in expected.items():
        assert numbers(first["sums"][key]) == pytest.approx(numbers(value), rel=1e-12), key
    assert all(one["empty"] == {} for one in (first, *others))
    # The first rank decides, whatever the others think.
    assert all(one["stop"] == [True, False] for one in (first, *others))


def numbers(value):
    return [float(one) for one in astuple(value) if isinstance(one, int | float)]


def test_without_process_group_it_says_what_to_do():
    with pytest.raises(AttachError, match="init_process_group"):
        TorchReducer()
