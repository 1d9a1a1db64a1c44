import json
from pathlib import Path

import pytest

from reference_trainer.__main__ import main
from reference_trainer.tasks.sandbox import default_sandbox
from roledrift import open_run


def test_train_and_evaluate(
    cache: Path, base_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    stress = '--set=stress={"kind": "hot_lr", "start_step": 2}'
    arguments = ["train", "tiny-smoke", "--out", str(out), "--cache", str(cache)]
    assert main([*arguments, "--set", "train.steps=2", stress, "--set", "name=mine"]) == 0
    said = capsys.readouterr().out
    assert "mine: stress: hot learning rate: x5 from step 2" in said
    assert "mine: validation" in said
    described = json.loads((out / "trainer" / "config.json").read_text())
    assert described["stress"] == "hot learning rate: x5 from step 2"
    assert described["config"]["train"]["steps"] == 2
    last = json.loads((out / "trainer" / "trace.jsonl").read_text().splitlines()[-1])
    assert main(["evaluate", str(out), "--cache", str(cache)]) == 0
    # Same adapters, same problems, same random numbers as the last validation of the run.
    assert f"accuracy {last['validation']['accuracy']:.3f} on 8" in capsys.readouterr().out


def test_the_protection_of_graded_programs_is_on_record(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["train.steps=1", "task.name=code", "pretrain.steps=2", "validation.every=0"]
    sets = [part for setting in settings for part in ("--set", setting)]
    out = tmp_path / "run"
    arguments = ["train", "tiny-smoke", "--out", str(out), "--cache", str(cache), *sets]
    assert main(arguments) == 0
    label = default_sandbox().protection.label
    assert f"tiny-smoke: sandbox: {label}" in capsys.readouterr().out
    assert open_run(out).header.notes["sandbox"] == label


def test_no_monitor(cache: Path, base_folder: Path, tmp_path: Path) -> None:
    arguments = ["--out", str(tmp_path), "--cache", str(cache), "--set", "train.steps=1"]
    assert main(["train", "tiny-smoke", "--no-monitor", *arguments]) == 0
    assert [one.name for one in tmp_path.iterdir()] == ["trainer"]


def test_pretrain_says_where(
    cache: Path, base_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pretrain", "tiny-smoke", "--cache", str(cache)]) == 0
    assert capsys.readouterr().out.strip() == str(base_folder)


def test_wrong_settings_are_errors_not_tracebacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = ["train", "tiny-smoke", "--out", str(tmp_path / "x")]
    for arguments, message in (
        ([*train, "--set", "train.stepz=2"], "did you mean 'steps'?"),
        ([*train, "--set", "train.steps"], "must look like"),
        (["train", "nothing", "--out", "x"], "neither a TOML or JSON file nor a preset"),
        (["evaluate", str(tmp_path)], "holds no trainer/config.json"),
    ):
        assert main(arguments) == 2
        assert message in capsys.readouterr().err


def test_the_demo_replaces_nothing_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "voting-ip-hot").mkdir()
    assert main(["demo", "--out", str(tmp_path), "--cache", str(tmp_path / "cache")]) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_every_checkpoint_is_graded(
    cache: Path, base_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    source = ["train", "tiny-smoke", "--out", str(out), "--cache", str(cache)]
    assert main([*source, "--set", "checkpoint.every=2"]) == 0
    evaluation = ["evaluate", str(out), "--all", "--cache", str(cache)]
    assert main(evaluation) == 0
    assert main(evaluation) == 0
    said = capsys.readouterr().out
    assert "step 3: accuracy" in said
    folder = out / "evaluation"
    validated = {
        row["step"]: row["validation"]["accuracy"]
        for row in map(json.loads, (out / "trainer" / "trace.jsonl").read_text().splitlines())
        if row["validation"]
    }
    # The same episodes as in the run's own validation, from adapters read back from the disk.
    assert sorted(validated) == [0, 2, 3]
    for step, accuracy in validated.items():
        grades = json.loads((folder / f"step_{step}.json").read_text())
        assert grades["accuracy"] == accuracy
        assert set(grades["roles"]["generator"]["pass_at_k"]) == {"1", "2", "3"}
        assert grades["roles"]["generator"]["overruled"] == 0
