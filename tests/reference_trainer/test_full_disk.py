"""A disk that takes no more ends a run with a sentence; what was written before is gone on with."""

import resource
from dataclasses import replace
from pathlib import Path

import pytest

from reference_trainer.config import Config
from reference_trainer.errors import StorageError
from reference_trainer.run_folder import RunFolder
from reference_trainer.setup import Setup, prepare
from reference_trainer.trainer import StepReport, train


@pytest.fixture
def setup(noisy: Config, cache: Path, base_folder: Path) -> Setup:
    short = replace(
        noisy,
        train=replace(noisy.train, steps=2),
        checkpoint=replace(noisy.checkpoint, every=1),
        monitor=replace(noisy.monitor, enabled=False),
        validation=replace(noisy.validation, every=0),
    )
    return prepare(short, cache=cache)


def test_a_checkpoint_that_does_not_fit(
    setup: Setup, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(report: StepReport) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))

    try:
        with pytest.raises(StorageError, match=r"_step_2 could not be written.*_step_1"):
            train(setup, out=tmp_path, on_step=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert RunFolder(tmp_path).finished() is None
    resumed = train(setup, out=tmp_path, resume=True)
    assert [report.step for report in resumed.steps] == [2]
    assert RunFolder(tmp_path).finished() == {"steps": 2, "stopped": ""}


def test_a_trace_that_does_not_fit(setup: Setup, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.path.mkdir()
    (folder.path / "trace.jsonl").symlink_to("/dev/full")
    with pytest.raises(StorageError, match=r"the start left \(.*No space left.* begins anew"):
        train(setup, out=tmp_path)
