"""The callback in TRL's trainers on a GPU: the same tests as on a CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("trl")
if not torch.cuda.is_available():
    pytest.skip("no GPU here: the suite runs these tests on a CPU", allow_module_level=True)

FILES = Path(__file__).parents[1] / "integrations"
ELSEWHERE = {"test_trl_runs.py", "test_trl_setup.py"}  # processes, trackers, messages: no device


def test_a_watched_training_on_a_gpu() -> None:
    """The training is the same to the last bit, and each statistic equals a direct computation."""
    files = [str(one) for one in sorted(FILES.glob("test_trl_*.py")) if one.name not in ELSEWHERE]
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    ended = subprocess.run(line, env=os.environ | {"ROLEDRIFT_TRL_TESTS": "gpu"}, check=False)
    assert ended.returncode == 0
