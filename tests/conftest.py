"""Fixtures for the whole suite."""

import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "offline")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a developer's own switches nor the test runner's window width reach the tests."""
    ours = ("ROLEDRIFT_CONFIG", "ROLEDRIFT_STRICT", "ROLEDRIFT_DIR", "ROLEDRIFT_DISABLED")
    for name in (*ours, "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
