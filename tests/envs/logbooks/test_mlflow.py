"""mlflow itself, on SQLite: what was logged is read back with its own client."""

from collections.abc import Callable
from pathlib import Path

import mlflow
import pytest

from roledrift import open_run
from roledrift.cli.main import main
from roledrift.report.publish import log_report

NAME = "roledrift/aggregator/length"


@pytest.fixture
def client(tmp_path: Path) -> mlflow.MlflowClient:
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    mlflow.create_experiment("roles", artifact_location=(tmp_path / "kept").as_uri())
    mlflow.set_experiment("roles")
    return mlflow.MlflowClient()


def test_statistics_and_alerts_and_the_report(
    client: mlflow.MlflowClient,
    watched: Callable[[str], Path],
    files: Callable[[Path], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    with mlflow.start_run() as run:
        folder = watched("mlflow")
        assert log_report(folder, out=tmp_path / "report") == ("mlflow",)
    told = client.get_metric_history(run.info.run_id, NAME)
    assert [one.step for one in told] == list(range(24))
    assert [one.value for one in told][13:18] == [5.0, 5.0, 16.0, 15.0, 16.0]
    (incident,) = open_run(folder).incidents
    tags = client.get_run(run.info.run_id).data.tags
    text = f"{incident.severity} step {incident.step}: {incident.sentence}"
    assert tags[f"roledrift.incident.{incident.id}"] == text
    back = client.download_artifacts(run.info.run_id, "roledrift-run", str(tmp_path))
    assert files(Path(back)) == files(tmp_path / "report")
    assert "report.md" in files(Path(back))


def test_several_roles_of_one_step_have_its_number(
    client: mlflow.MlflowClient, watched: Callable[[str], Path]
) -> None:
    with mlflow.start_run() as run:
        watched("mlflow")
    data = client.get_run(run.info.run_id).data
    assert data.metrics["roledrift/generator/length"] == 20.0
    assert data.metrics[NAME] == 16.0


def test_without_an_active_run_nothing_is_started(
    client: mlflow.MlflowClient, watched: Callable[[str], Path]
) -> None:
    folder = watched("mlflow")
    assert log_report(folder) == ()
    assert mlflow.active_run() is None
    assert client.search_runs([mlflow.get_experiment_by_name("roles").experiment_id]) == []


def test_a_run_of_the_tracking_server_is_read(client: mlflow.MlflowClient, tmp_path: Path) -> None:
    with mlflow.start_run(run_name="brave-fox") as run:
        mlflow.log_param("seed", 7)
        for step in range(1, 13):
            mlflow.log_metrics({"reward": 0.05 * step, "completions/mean_length": 9.0}, step=step)
    address = f"mlflow://{run.info.run_id}"
    assert main(["import", address, "-o", str(tmp_path / "run")]) == 0
    read = open_run(tmp_path / "run")
    assert [one.step for one in read.steps()] == list(range(1, 13))
    assert read.steps()[-1].totals["reward"] == 0.05 * 12
    assert (read.header.run, read.header.seed) == ("brave-fox", 7)
    assert main(["import", "mlflow://nosuch", "-o", str(tmp_path / "other")]) == 2
