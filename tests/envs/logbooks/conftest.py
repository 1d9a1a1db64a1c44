"""What mlflow and trackio need from the environment, and one watched run for both of them."""

import os
import tempfile

# Before anything imports them, which read these once.
os.environ.update(
    {
        "TRACKIO_DIR": tempfile.mkdtemp(prefix="roledrift-trackio-"),
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
    }
)

from collections.abc import Callable
from pathlib import Path

import pytest

from roledrift import open_monitor
from tests.monitor.test_open_monitor import spans


@pytest.fixture
def watched(tmp_path: Path) -> Callable[[str], Path]:
    """24 steps of a run whose aggregator grows from 5 to 15 tokens, forwarded to one place."""

    def run(place: str) -> Path:
        config = {"notify": {"forward": [place]}}
        monitor = open_monitor("voting", tmp_path / "run", config=config)
        for step in range(24):
            monitor.observe(spans(5 if step < 15 else 15 + step % 2))
            monitor.end_step(step)
        monitor.close()
        return tmp_path / "run"

    return run


@pytest.fixture
def files() -> Callable[[Path], dict[str, bytes]]:
    """Every file of a folder, by its path in it."""
    return lambda folder: {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
