"""A run that is killed again and again, in processes of its own."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from reference_trainer.config import CheckpointSettings, Config, load
from reference_trainer.setup import prepare
from reference_trainer.trainer import StepReport, train
from roledrift import open_run
from tests.ranks import process
from tests.reference_trainer.test_checkpoint import assert_it_moves, lines, same, weights


def long_run(noisy: Config) -> Config:
    return replace(
        noisy,
        train=replace(noisy.train, steps=6),
        checkpoint=CheckpointSettings(every=2, keep=2),
    )


def killed_run(run: Path, cache: Path, kind: str, value: str) -> None:
    """Train, and end by SIGKILL at the event: the end of a step, or a file that is touched."""

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == kind and value in str(arguments[0]):
            die()

    def on_step(report: StepReport) -> None:
        if kind == "step" and report.step == int(value):
            die()

    torch.set_num_threads(1)
    settings: dict[str, Any] = {
        "train": {"steps": 6},
        "checkpoint": {"every": 2, "keep": 2},
        "stress": {"kind": "reward_noise", "share": 1.0},
    }
    setup = prepare(load("tiny-smoke", settings), cache=cache)
    sys.addaudithook(watch)
    train(setup, out=run, resume=True, on_step=on_step)


KILLS = (
    ("step", "1"),  # before the first checkpoint
    ("open", ".draft-global_step_2/state.pt"),  # half of the first checkpoint is written
    ("os.rename", ".draft-global_step_4"),  # complete, but without its name
    ("step", "5"),  # between two checkpoints
    ("open", "finished.json"),  # everything done but the last line
)


@pytest.mark.slow
@pytest.mark.ranks
def test_killed_again_and_again_it_ends_in_the_same_bits(
    noisy: Config, cache: Path, base_folder: Path, tmp_path: Path
) -> None:
    whole = prepare(long_run(noisy), cache=cache)
    train(whole, out=tmp_path / "whole")
    assert_it_moves(tmp_path / "whole")
    run = tmp_path / "killed"
    for kind, value in KILLS:
        child = process(killed_run, run, cache, kind, value)
        child.start()
        child.join(120)
        assert child.exitcode == -signal.SIGKILL
    setup = prepare(long_run(noisy), cache=cache)
    train(setup, out=run, resume=True)
    assert lines(run) == lines(tmp_path / "whole")
    assert same(weights(setup.bank), weights(whole.bank))
    final = sorted(path for path in (run / "trainer" / "adapters").rglob("*.safetensors"))
    assert len(final) == 2
    for file in final:
        twin = tmp_path / "whole" / file.relative_to(run)
        assert file.read_bytes() == twin.read_bytes()

    mine, its = open_run(run), open_run(tmp_path / "whole")
    assert mine.state == "finished"
    assert [one.step for one in mine.steps()] == [1, 2, 3, 4, 5, 6]
    for one, other in zip(mine.steps(), its.steps(), strict=True):
        assert (one.groups, one.totals) == (other.groups, other.totals)
        assert [gram.labels for gram in one.gradients] == [gram.labels for gram in other.gradients]
    texts = [
        {
            (one.step, one.role, one.slot, one.text)
            for one in seen.samples()
            if "canary" in one.flags
        }
        for seen in (mine, its)
    ]
    assert texts[0] == texts[1]
