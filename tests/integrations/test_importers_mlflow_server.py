"""mlflow's own client is tested where it is installed: ``tests/envs/logbooks/test_mlflow.py``."""

import sys
from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.ingest import remote
from roledrift.ingest.importing import job_for


def test_without_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    form = remote("mlflow://abc")
    assert form is not None
    with pytest.raises(StoreError, match="pip install mlflow-skinny"):
        list(form.read(job_for(Path("abc"), address="mlflow://abc")))
