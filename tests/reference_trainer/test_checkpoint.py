import random
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from reference_trainer.__main__ import main
from reference_trainer.checkpoint import (
    Position,
    checkpoints,
    drop_after,
    latest_whole,
    load_adapters,
    position_of,
    restore,
    save_checkpoint,
)
from reference_trainer.config import CheckpointSettings, Config
from reference_trainer.errors import SettingsError, StorageError
from reference_trainer.manifest import write_manifest
from reference_trainer.policies import AdapterBank
from reference_trainer.run_folder import RunFolder
from reference_trainer.setup import prepare
from reference_trainer.trainer import StepReport, train
from roledrift import open_run


def weights(bank: AdapterBank) -> list[torch.Tensor]:
    return [one.detach().clone() for policy in bank.policies for one in bank.parameters_of(policy)]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def push(bank: AdapterBank, policy: str) -> None:
    bank.activate(policy)
    for parameter in bank.parameters_of(policy):
        parameter.grad = torch.ones_like(parameter)
    bank.step(policy)


@contextmanager
def full_disk(most: int) -> Iterator[None]:
    """No file gets longer than ``most`` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("most", [100, 4096])  # the adapter's configuration, and its weights
def test_a_full_disk_is_named_and_spoils_nothing(
    make_bank: Callable[..., AdapterBank], tmp_path: Path, most: int
) -> None:
    bank = make_bank("generator", "aggregator")
    with full_disk(most), pytest.raises(StorageError, match="there is no earlier one"):
        save_checkpoint(bank, tmp_path, Position(1, 8, None), keep=0)
    whole = save_checkpoint(bank, tmp_path, Position(1, 8, None), keep=0)
    with full_disk(most), pytest.raises(StorageError, match=r"step_2 could not.*--resume.*_1$"):
        save_checkpoint(bank, tmp_path, Position(2, 16, None), keep=0)
    assert latest_whole(tmp_path) == (whole, ())
    assert not list(tmp_path.glob(".draft*"))
    save_checkpoint(bank, tmp_path, Position(2, 16, None), keep=0)
    assert list(checkpoints(tmp_path)) == [1, 2]


def test_what_is_saved_comes_back(make_bank: Callable[..., AdapterBank], tmp_path: Path) -> None:
    bank = make_bank("generator", "aggregator")
    push(bank, "generator")
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    where = save_checkpoint(bank, tmp_path, Position(4, 32, 0.5), keep=0)
    kept = weights(bank)
    drawn = (random.random(), np.random.rand(), torch.rand(1))
    push(bank, "generator")
    after = weights(bank)

    other = make_bank("generator", "aggregator", seed=1)
    assert restore(other, where) == Position(4, 32, 0.5)
    assert same(weights(other), kept)
    assert (random.random(), np.random.rand(), torch.rand(1)) == drawn
    push(other, "generator")
    assert same(weights(other), after)


@pytest.mark.parametrize("optimizers", ["per_policy", "one"])
def test_a_restored_run_follows_the_schedule_of_the_learning_rate(
    make_bank: Callable[..., AdapterBank], tmp_path: Path, optimizers: Any
) -> None:
    bank = make_bank("generator", "aggregator", lr=0.8, optimizers=optimizers)
    bank.set_lr(1, total=20)
    push(bank, "generator")
    where = save_checkpoint(bank, tmp_path, Position(1, 8), keep=0)
    bank.set_lr(4, total=20)
    push(bank, "generator")

    other = make_bank("generator", "aggregator", lr=0.8, optimizers=optimizers)
    restore(other, where)
    other.set_lr(4, total=20)
    push(other, "generator")
    assert same(weights(other), weights(bank))


def test_the_layout_is_that_of_the_papers_code(
    make_bank: Callable[..., AdapterBank], tmp_path: Path
) -> None:
    save_checkpoint(make_bank("generator", "aggregator"), tmp_path, Position(5, 0), keep=0)
    save_checkpoint(make_bank("shared"), tmp_path, Position(6, 0), keep=0)
    found = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("adapter_*")}
    assert found == {
        f"global_step_{folder}/{file}"
        for folder in (
            "5/actor/lora_adapter_generator",
            "5/actor/lora_adapter_aggregator",
            "6/actor/lora_adapter",
        )
        for file in ("adapter_config.json", "adapter_model.safetensors")
    }
    assert (tmp_path / "latest_checkpointed_iteration.txt").read_text() == "6"


def test_the_last_ones_and_the_best_stay(
    make_bank: Callable[..., AdapterBank], tmp_path: Path
) -> None:
    bank = make_bank("shared")
    for step, accuracy in ((1, None), (2, 0.7), (3, 0.4), (4, 0.7), (5, 0.1), (6, None)):
        save_checkpoint(bank, tmp_path, Position(step, 0, accuracy), keep=2)
    assert list(checkpoints(tmp_path)) == [2, 5, 6]
    assert position_of(checkpoints(tmp_path)[2]).accuracy == 0.7
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".")]


def test_what_an_alert_advises_to_go_back_to_stays(
    make_bank: Callable[..., AdapterBank], tmp_path: Path
) -> None:
    bank = make_bank("shared")
    for step in range(1, 6):
        save_checkpoint(bank, tmp_path, Position(step, 0, 0.1 * step), keep=1, spare={2})
    assert list(checkpoints(tmp_path)) == [2, 5]


def test_a_draft_is_no_checkpoint(tmp_path: Path) -> None:
    assert latest_whole(tmp_path / "none") == (None, ())
    (tmp_path / ".draft-global_step_9").mkdir()
    (tmp_path / "global_step_x").mkdir()
    assert latest_whole(tmp_path) == (None, ())


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.fixture(scope="module")
def three(
    make_bank: Callable[..., AdapterBank], tmp_path_factory: pytest.TempPathFactory
) -> tuple[AdapterBank, Path]:
    """A bank and its checkpoints 1 to 3."""
    bank, folder = make_bank("shared"), tmp_path_factory.mktemp("three")
    for step in (1, 2, 3):
        save_checkpoint(bank, folder, Position(step, 0), keep=0)
    return bank, folder


@pytest.mark.parametrize("harm", [cut, flip, Path.unlink])
@pytest.mark.parametrize(
    "file", ["state.pt", "position.json", "actor/lora_adapter/adapter_model.safetensors"]
)
def test_a_damaged_checkpoint_is_named_and_the_newest_whole_one_is_taken(
    three: tuple[AdapterBank, Path], tmp_path: Path, file: str, harm: Callable[[Path], None]
) -> None:
    bank, folder = three
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    assert latest_whole(tmp_path) == (tmp_path / "global_step_3", ())
    harm(tmp_path / "global_step_3" / file)
    found, (sentence,) = latest_whole(tmp_path)
    assert found == tmp_path / "global_step_2"
    assert f"{tmp_path / 'global_step_3'} is damaged: {file}" in sentence
    with pytest.raises(SettingsError, match="is damaged"):
        load_adapters(bank, tmp_path / "global_step_3")
    save_checkpoint(bank, tmp_path, Position(4, 0), keep=1)  # reads all positions
    drop_after(tmp_path, 2)
    assert max(checkpoints(tmp_path)) <= 2


def test_a_run_without_a_whole_checkpoint_says_what_to_do(
    make_bank: Callable[..., AdapterBank], tmp_path: Path
) -> None:
    save_checkpoint(make_bank("shared"), tmp_path, Position(1, 0), keep=0)
    (tmp_path / "global_step_1" / "manifest.json").write_text('{"version": 2, "sha256": {}}')
    with pytest.raises(SettingsError, match=r"written by another version.*delete"):
        latest_whole(tmp_path)
    (tmp_path / "global_step_1" / "manifest.json").unlink()
    with pytest.raises(SettingsError, match=r"no manifest\.json.*an earlier version"):
        latest_whole(tmp_path)


@pytest.mark.parametrize("file", ["state.pt", "position.json"])
def test_a_whole_checkpoint_of_another_version(
    make_bank: Callable[..., AdapterBank], tmp_path: Path, file: str
) -> None:
    bank = make_bank("shared")
    where = save_checkpoint(bank, tmp_path, Position(1, 0), keep=0)
    if file == "state.pt":
        state = torch.load(where / file, weights_only=True)
        torch.save({"optimizers": state["optimizers"]}, where / file)
    else:
        (where / file).write_text('{"step": 1, "problem": 0}')
    (where / "manifest.json").unlink()
    write_manifest(where)
    assert latest_whole(tmp_path) == (where, ())
    with pytest.raises(SettingsError, match=r"was written by another version.*Resume with the ver"):
        restore(bank, where)


def test_another_routing_is_refused(make_bank: Callable[..., AdapterBank], tmp_path: Path) -> None:
    where = save_checkpoint(make_bank("shared"), tmp_path, Position(1, 0), keep=0)
    with pytest.raises(SettingsError, match="another routing"):
        load_adapters(make_bank("generator"), where)


def lines(run: Path) -> list[dict[str, Any]]:
    return [row | {"seconds": {}} for row in RunFolder(run).trace()]


def assert_it_moves(run: Path) -> None:
    """Every iteration has gradients: a run that stands still would resume to anything."""
    for report in lines(run)[1:]:
        assert all(one["grad_norm"] > 0.0 for one in report["policies"].values()), report


@dataclass(frozen=True)
class Interrupted:
    """A run that was left alone, and one that was interrupted in iteration 4, after checkpoint 2.

    Attributes:
        config: Of both.
        whole: Run directory of the first.
        weights: What the first ended with.
        run: Run directory of the second.
    """

    config: Config
    whole: Path
    weights: list[torch.Tensor]
    run: Path


@pytest.fixture(scope="module")
def interrupted(
    noisy: Config, cache: Path, base_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Interrupted:
    folder = tmp_path_factory.mktemp("interrupted")
    config = replace(
        noisy,
        rollout=replace(noisy.rollout, problems=2, copies=4),
        train=replace(noisy.train, steps=4),
        checkpoint=CheckpointSettings(every=2, keep=2),
        validation=replace(noisy.validation, every=0),
        monitor=replace(noisy.monitor, enabled=False),
    )
    whole = prepare(config, cache=cache)
    train(whole, out=folder / "whole")
    assert_it_moves(folder / "whole")

    def interrupt(report: StepReport) -> None:
        if report.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(prepare(config, cache=cache), out=folder / "run", on_step=interrupt)
    return Interrupted(config, folder / "whole", weights(whole.bank), folder / "run")


def forget(*_: Any) -> None:
    """Stands for a loader that restores nothing."""


@pytest.mark.parametrize(
    "sabotage",
    [None, "torch.optim.AdamW.load_state_dict", "reference_trainer.checkpoint.load_adapters"],
)
def test_a_resumed_run_has_the_same_bits_only_if_everything_is_restored(
    interrupted: Interrupted,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sabotage: str | None,
) -> None:
    run = shutil.copytree(interrupted.run, tmp_path / "run")
    if sabotage:
        monkeypatch.setattr(sabotage, forget)
    resumed = prepare(interrupted.config, cache=cache)
    result = train(resumed, out=run, resume=True)
    assert [report.step for report in result.steps] == [3, 4]
    equal = lines(run) == lines(interrupted.whole)
    assert (equal, same(weights(resumed.bank), interrupted.weights)) == (not sabotage,) * 2


def test_a_run_goes_on_from_before_a_damaged_checkpoint(
    interrupted: Interrupted, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(interrupted.whole, tmp_path / "run")
    folder = RunFolder(run)
    flip(folder.checkpoints / "global_step_4" / "state.pt")
    (folder.path / "finished.json").unlink()
    result = train(prepare(interrupted.config, cache=cache), out=run, resume=True)
    assert [report.step for report in result.steps] == [3, 4]
    assert lines(run) == lines(interrupted.whole)
    said = capsys.readouterr().err
    assert "global_step_4 is damaged: state.pt" in said
    assert "goes on from global_step_2" in said
    assert latest_whole(folder.checkpoints) == (folder.checkpoints / "global_step_4", ())


def as_trained(report: StepReport) -> StepReport:
    """Without what a run that is not watched does not score: its rows without an advantage."""
    policies = {name: replace(one, rollout_chi2=None) for name, one in report.policies.items()}
    return replace(report, seconds={}, policies=policies)


def test_a_longer_run_goes_on_and_another_is_refused(
    smoke: Config, cache: Path, tmp_path: Path
) -> None:
    short = replace(
        smoke, train=replace(smoke.train, steps=2), validation=replace(smoke.validation, every=0)
    )
    train(prepare(short, cache=cache), out=tmp_path / "run")
    longer = replace(short, train=replace(short.train, steps=3))
    result = train(prepare(longer, cache=cache), out=tmp_path / "run", resume=True)
    assert [report.step for report in result.steps] == [3]
    told = open_run(tmp_path / "run").steps()[-1].checkpoints
    assert [(one.step, Path(one.path).name) for one in told] == [(2, "global_step_2")]
    whole = train(prepare(longer, cache=cache))
    assert as_trained(result.steps[0]) == as_trained(whole.steps[2])
    assert RunFolder(tmp_path / "run").finished() == {"steps": 3, "stopped": ""}
    with pytest.raises(SettingsError, match="seed was 0, is 1"):
        train(prepare(replace(longer, seed=1), cache=cache), out=tmp_path / "run", resume=True)


def test_resume_on_the_command_line(
    cache: Path, base_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    arguments = ["train", "tiny-smoke", "--out", str(run), "--cache", str(cache)]
    assert main([*arguments, "--resume", "--set", "train.steps=1"]) == 0
    assert main([*arguments, "--set", "train.steps=1"]) == 2
    assert "resume it" in capsys.readouterr().err
    assert main([*arguments, "--resume", "--set", "train.steps=1"]) == 0
    assert "nothing left to do" in capsys.readouterr().out
    assert [row["step"] for row in lines(run)] == [0, 1]
