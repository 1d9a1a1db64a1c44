"""Stores that mlflow 3.17 wrote: a folder and a database, with the same runs."""

import math
from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.ingest import sniff
from roledrift.ingest.importing import import_run, job_for
from roledrift.ingest.tree import runs_at
from tests.ingest.logs import FIXTURES, imported, unpacked


@pytest.fixture(params=["folder", "database"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "folder":
        return FIXTURES / "mlflow" / "mlruns"
    return unpacked("mlflow/mlflow.db.gz", tmp_path)


def test_runs_with_numbers_that_were_not_deleted(store: Path) -> None:
    form, _ = sniff(store)
    assert form.name == "mlflow"
    assert [one.name for one in runs_at(store, [form])] == ["brave-fox", "calm-owl"]


def test_a_run_that_went_back_to_a_checkpoint(store: Path, tmp_path: Path) -> None:
    """What each store says is the same: metrics with slashes, a gradient that is not a number."""
    first = runs_at(store, [sniff(store)[0]])[0].sources[0]
    _, run = imported(store, tmp_path / "run", part=first.part)
    steps = run.steps()
    assert [one.step for one in steps] == list(range(1, 13))
    assert steps[-1].totals == {"reward": pytest.approx(0.6), "val_accuracy": 0.25}
    assert steps[-1].mean("policy", "length") == 112
    assert math.isnan(steps[8].mean("policy", "grad_norm") or 0.0)
    assert (run.header.run, run.header.seed) == ("brave-fox", 7)
    assert run.header.notes["restarts"] == "the log went back from step 7 to 5"
    assert run.header.notes["mlflow experiment"] == "grpo"


def test_the_folder_of_one_run_or_one_experiment() -> None:
    form, _ = sniff(FIXTURES / "mlflow" / "mlruns")
    (experiment,) = {one.parent.parent for one in (FIXTURES / "mlflow").rglob("*/*/metrics")}
    assert len(runs_at(experiment, [form])) == 2
    (name,) = runs_at(experiment, [form])[0].sources[0].part
    done = import_run(sniff(experiment / name), job_for(experiment / name), None)
    assert done.tally.steps == 12


def test_of_several_runs_one_must_be_chosen(store: Path) -> None:
    with pytest.raises(StoreError, match=r"holds 2 runs \(brave-fox, calm-owl\)"):
        import_run(sniff(store), job_for(store), None)


def test_a_folder_of_artifacts_alone_is_no_store(tmp_path: Path) -> None:
    """Beside a database mlflow keeps artifacts in ``mlruns``, without metrics."""
    (tmp_path / "mlruns" / "1" / "abc" / "artifacts").mkdir(parents=True)
    with pytest.raises(StoreError, match="not recognised"):
        sniff(tmp_path / "mlruns")


def test_a_broken_line_is_counted(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "metrics").mkdir(parents=True)
    (run / "meta.yaml").write_text("run_name: 'it''s'\nlifecycle_stage: active\n")
    (run / "metrics" / "reward").write_text("0 0.4\n1 0.5 1\nhalf\n2 x 2\n3 0.7 3")
    done, stored = imported(run, tmp_path / "out")
    assert stored.header.run == "it's"
    assert done.odd["broken line of a metric"] == 2
    assert [one.step for one in stored.steps()] == [0, 1, 3]
