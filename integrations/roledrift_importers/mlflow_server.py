"""A run of an mlflow tracking server, ``mlflow://<run id>``, through mlflow's own client.

The server is the client's: what ``MLFLOW_TRACKING_URI`` names.
"""

from __future__ import annotations

from collections.abc import Iterator

from roledrift.errors import StoreError
from roledrift.ingest.form import Job
from roledrift.ingest.values import integer

SCHEME = "mlflow://"

Point = tuple[int, int, str, float]
"""When it was logged in milliseconds, at which step, the metric's name, and its value."""


def points(job: Job) -> list[Point]:
    """All logged values of the run, in the order of time.

    Raises:
        StoreError: If mlflow is not installed, or the server does not give the run.
    """
    return sorted(_asked(job, job.address.removeprefix(SCHEME).strip("/")))


def _asked(job: Job, run_id: str) -> Iterator[Point]:
    try:
        import mlflow
    except ImportError as error:
        raise StoreError(
            f"{job.shown}: a tracking server is asked with mlflow, which is not installed: pip "
            "install mlflow-skinny. A local mlruns/ or mlflow.db is read without it"
        ) from error
    client = mlflow.MlflowClient()
    try:
        run = client.get_run(run_id)
        job.facts.run = run.info.run_name or run_id
        job.facts.seed = integer(run.data.params.get("seed"))
        for key in run.data.metrics:
            for point in client.get_metric_history(run_id, key):
                yield point.timestamp, point.step, key, point.value
    except (mlflow.MlflowException, OSError) as error:
        words = " ".join(str(error).split())
        raise StoreError(
            f"{job.shown}: mlflow at {mlflow.get_tracking_uri()} does not give this run: {words}; "
            "MLFLOW_TRACKING_URI names the server"
        ) from None
