"""Runs in mlflow's two local stores, and in trackio's, by their own clients.

After `make test-logbooks`, from the root:
`PYTHONPATH=. .venv-logbooks/bin/python tests/ingest/recorders/record_mlflow.py`
"""

import gzip
import os
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
# mlflow refuses to write the folders that its earlier versions wrote unless it is told to.
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"

import mlflow
from written import fresh, written

HOW = "start_run, log_metrics; made-up numbers"


def rows(name: str) -> Iterator[tuple[int, dict[str, float]]]:
    """A run that crashed after step 7 and was taken back to step 5; one gradient is not finite."""
    for step in (*range(1, 8), *range(5, 13)):
        yield (
            step,
            {
                "reward": 0.05 * step if name == "brave-fox" else 0.5,
                "completions/mean_length": 100.0 + step,
                "rewards/accuracy/mean": 0.05 * step,
                "grad_norm": float("nan") if step == 9 else 0.3,
                "val-core/math/acc/mean_at_1": 0.25,
            },
        )


def record(uri: str) -> None:
    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("grpo")
    for name in ("brave-fox", "calm-owl", "deleted"):
        with mlflow.start_run(run_name=name) as run:
            mlflow.log_params({"seed": 7, "learning_rate": 1e-6})
            for step, metrics in rows(name):
                mlflow.log_metrics(metrics, step=step)
        if name == "deleted":
            mlflow.MlflowClient().delete_run(run.info.run_id)
    with mlflow.start_run(run_name="nothing-logged"):
        mlflow.log_param("seed", 8)


def main() -> None:
    target = fresh("mlflow")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for uri in ("file:mlruns", "sqlite:///mlflow.db"):
            record(uri)
        for path in sorted(Path("mlruns").rglob("*")):
            # Not what says where on this machine the artifacts would be, nor empty folders.
            if path.is_file():
                copy = target / path
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(path.read_text().replace(str(Path.cwd()), "/somewhere"))
        body = Path("mlflow.db").read_bytes()
        (target / "mlflow.db.gz").write_bytes(gzip.compress(body, mtime=0))
    written("mlflow", f"mlflow {version('mlflow-skinny')}", HOW)


if __name__ == "__main__":
    main()
