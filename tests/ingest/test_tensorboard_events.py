"""Event files that TensorBoard's own writer wrote."""

from pathlib import Path

import pytest
from torch.utils.tensorboard import SummaryWriter

from roledrift.ingest import sniff
from roledrift.ingest.importing import import_run, job_for
from roledrift.store.reader import open_run


def test_scalars_of_a_step_are_one_row(tmp_path: Path) -> None:
    folder = tmp_path / "out" / "runs" / "today"
    writer = SummaryWriter(folder)
    for step in range(1, 13):
        writer.add_scalar("train/reward", 0.1 * step, step)
        writer.add_scalar("train/grad_norm", float("nan") if step == 5 else 1.0, step)
        if step % 4 == 0:
            writer.add_scalar("eval/accuracy", 0.5, step)
        writer.add_text("note", "hello", step)
    writer.close()
    source = tmp_path / "out"
    done = import_run(sniff(source), job_for(source), tmp_path / "run")
    assert (done.format, done.tally.steps) == ("tensorboard", 12)
    records = open_run(tmp_path / "run").steps()
    assert records[3].totals == {"reward": pytest.approx(0.4), "val_accuracy": 0.5}
    assert str(records[4].mean("*", "grad_norm")) == "nan"
