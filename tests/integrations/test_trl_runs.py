"""A run from its beginning to its end: stopping, resuming, reporters, several processes."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import wandb
from roledrift_importers.wandb_log import LoggedRow, entries
from roledrift_trl import RoleDriftCallback
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from roledrift.ingest.ledger import Ledger
from roledrift.records import Checkpoint
from roledrift.store.reader import open_run
from tests.ingest.logs import imported
from tests.integrations.trl_rank import trained
from tests.integrations.trl_tiny import (
    PAIR,
    make_trainer,
    scripted,
    tiny_model,
    trace,
    watched,
)
from tests.ranks import free_port, together

ROOT = Path(__file__).parents[2]


def test_length_inflation_stops_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def pays_length(completion_ids: Any, role: Any, **_: Any) -> list[float]:
        signs = [1.0 if name == "aggregator" else -1.0 for name in role]
        return [sign * len(ids) for sign, ids in zip(signs, completion_ids, strict=True)]

    model = tiny_model()
    with torch.no_grad():
        model.lm_head.weight.div_(8)
    trainer, records = watched(
        tmp_path,
        model=model,
        lora=False,
        reward=pays_length,
        per_device_train_batch_size=32,
        num_generations=8,
        max_completion_length=24,
        max_steps=60,
        learning_rate=1e-2,
        config={
            "stop_on": ["length_inflation"],
            "baseline": {"window": 4},
            "budget": 0.0,  # steps of a tenth of a second: not all would be recorded
            "detectors": {"length_inflation": {"limit": 16.0}},
        },
    )
    alerts = open_run(tmp_path / "run").alerts()
    stop = next(alert for alert in alerts if alert.stops)
    assert (stop.detector, stop.role) == ("length_inflation", "aggregator")
    assert trainer.state.global_step == stop.step == records[-1].step < 60
    said = capsys.readouterr().err
    assert f"roledrift stops the training after step {stop.step} (stop_on)" in said
    assert "  Role gradients are not measured, but all other statistics are: " in said
    assert "gradients.store='sketch'" in said


def test_a_resumed_training_continues_its_run(tmp_path: Path) -> None:
    watched(tmp_path, max_steps=2, save_strategy="steps", save_steps=1)
    callback = RoleDriftCallback(PAIR, tmp_path / "run")
    trainer = make_trainer(tmp_path, [callback], max_steps=4, save_strategy="steps", save_steps=1)
    trainer.train(resume_from_checkpoint=str(tmp_path / "trainer" / "checkpoint-1"))
    run = open_run(tmp_path / "run")
    assert [record.step for record in run.steps()] == [1, 2, 3, 4]
    assert run.seams == (2,)
    assert run.state == "finished"
    kept = run.steps()[-1].checkpoints
    folders = [tmp_path / "trainer" / f"checkpoint-{step}" for step in (1, 2, 3)]
    assert kept == tuple(Checkpoint(i, str(one)) for i, one in enumerate(folders, start=1))
    states = json.loads((tmp_path / "trainer/checkpoint-4/trainer_state.json").read_text())
    assert "RoleDriftCallback" not in states["stateful_callbacks"]


def test_a_checkpoint_from_before_the_callback_begins_a_run(tmp_path: Path) -> None:
    make_trainer(tmp_path, [], max_steps=2, save_strategy="steps", save_steps=2).train()
    callback = RoleDriftCallback(PAIR, tmp_path / "run")
    trainer = make_trainer(tmp_path, [callback], max_steps=3)
    trainer.train(resume_from_checkpoint=str(tmp_path / "trainer" / "checkpoint-2"))
    assert [record.step for record in open_run(tmp_path / "run").steps()] == [3]


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["trl_grpo_roles.py", "--out", str(tmp_path), "--steps", "3"]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(ROOT / "examples" / arguments[0]), run_name="__main__")
    said = capsys.readouterr().err
    run = open_run(tmp_path / "roledrift")
    told = [line for line in said.splitlines() if line.startswith("roledrift")]
    assert " watches trl.GRPOTrainer: generator, aggregator; " in told[0]
    assert told[0].endswith(f"run directory {tmp_path / 'roledrift'}")
    assert "  Role gradients of 28 weights, policies ['shared'], folded" in said
    assert told[-1].endswith(f"roledrift report {tmp_path / 'roledrift'}")
    assert [record.step for record in run.steps()] == [1, 2, 3]
    assert not any(record.faults for record in run.steps())
    assert {"generator", "aggregator"} <= set(run.steps()[0].groups)


def test_statistics_reach_the_trainers_own_reporters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorBoard's event file and wandb's offline file are read back."""
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_CONSOLE", "off")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "events"))
    _, records = watched(tmp_path, report_to=["tensorboard", "wandb"])
    wandb.finish()
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    rows = [one.data for one in entries(file, Ledger()) if isinstance(one, LoggedRow)]
    for role in PAIR:
        known = {one.step: one.mean(role, "length") for one in records if one.stat(role, "length")}
        key = f"train/roledrift/{role}/length"
        assert {one.step: one.value for one in events.Scalars(key)} == pytest.approx(known)
        found = {row["train/global_step"]: row[key] for row in rows if key in row}
        assert found == pytest.approx(known)


def test_what_a_reward_function_logs_extra_is_what_the_import_reads(tmp_path: Path) -> None:
    """Beside the callback ``log_extra`` works as ever; the two ways to a run then agree."""

    def reward(completion_ids: Any, role: Any, log_extra: Any, **_: Any) -> list[float]:
        log_extra("role", list(role))
        return [float(len(ids)) for ids in completion_ids]

    trainer, records = watched(tmp_path, reward=reward, log_completions=True, save_steps=3,
                               save_strategy="steps")  # fmt: skip
    files = sorted(Path(trainer.args.output_dir).glob("completions/*.parquet"))
    assert len(files) == 3
    _, run = imported(Path(trainer.args.output_dir), tmp_path / "imported")
    for live, read in zip(records, run.steps(), strict=True):
        for role in PAIR:
            assert read.mean(role, "reward") == pytest.approx(live.mean(role, "reward"))
    assert any(one.stat(role, "reward") for one in records for role in PAIR)


def test_where_steps_are_too_short_not_every_one_is_recorded(tmp_path: Path) -> None:
    """The budget is kept from the tenth step on, and the training is the same to the last bit."""
    plain = make_trainer(tmp_path / "plain", [], max_steps=18)
    plain.train()
    config = {"tier": "full", "budget": 1e-9}
    trainer, records = watched(tmp_path, max_steps=18, config=config)
    assert [record.step for record in records] == list(range(1, 10))
    assert trace(trainer) == trace(plain)
    assert not any(record.faults for record in records)


def grown(role: str, step: int) -> int:
    return 3 if role == "generator" or step < 6 else 7


STOP = {"stop_on": ["length_inflation"], "baseline": {"window": 4}, "budget": 0.0}


def test_a_resumed_training_keeps_its_baseline(tmp_path: Path) -> None:
    """Answers that have grown since the checkpoint are growth, not a new normal."""
    changes: dict[str, Any] = {
        "rollout_func": scripted(grown),
        "per_device_train_batch_size": 16,
        "save_strategy": "steps",
        "save_steps": 6,
    }
    watched(tmp_path, max_steps=6, config=STOP, **changes)
    assert not any(one.stops for one in open_run(tmp_path / "run").alerts())
    callback = RoleDriftCallback(PAIR, tmp_path / "run", config=STOP)
    trainer = make_trainer(tmp_path, [callback], max_steps=40, **changes)
    trainer.train(resume_from_checkpoint=str(tmp_path / "trainer" / "checkpoint-6"))
    run = open_run(tmp_path / "run")
    (alert,) = [one for one in run.alerts() if one.stops]
    assert (alert.detector, alert.role) == ("length_inflation", "aggregator")
    assert 6 < alert.step == trainer.state.global_step < 40
    assert [one.step for one in run.steps()] == list(range(1, alert.step + 1))


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of two trainings, one after the other: starting two processes is the price."""
    folder, port = tmp_path_factory.mktemp("ranks"), free_port()
    said = together(trained, [(rank, port, folder) for rank in range(2)])
    assert [one.count("See: roledrift report") for one in said] == [2, 0], "only the first speaks"
    return folder


def ended(folder: Path) -> list[int]:
    """The step at which each of two processes ended its training."""
    return [int((folder / f"rank-{rank}").read_text()) for rank in range(2)]


@pytest.mark.slow
@pytest.mark.ranks
def test_two_processes_write_one_run(two_processes: Path) -> None:
    assert ended(two_processes / "plain") == [3, 3]
    run = open_run(two_processes / "plain" / "run")
    assert len(run.segments) == 1
    assert [record.step for record in run.steps()] == [1, 2, 3]
    for record in run.steps():
        assert not record.faults
        stats = [record.stat("*", name) for name in ("length", "reward", "update.ppl_ratio")]
        assert [stat and stat.n for stat in stats] == [16, 16, 16]
        groups = record.stat("*", "zero_variance")
        assert groups is not None
        assert groups.n == 4
        assert record.totals["reward"] == pytest.approx(record.mean("*", "reward"))


@pytest.mark.slow
@pytest.mark.ranks
def test_growth_on_one_process_stops_both(two_processes: Path) -> None:
    """Only the second process has answers that grow; nobody waits for the other for ever."""
    first, second = ended(two_processes / "grows")
    run = open_run(two_processes / "grows" / "run")
    (alert,) = [one for one in run.alerts() if one.stops]
    assert (alert.detector, alert.role) == ("length_inflation", "aggregator")
    assert first == second == alert.step == run.steps()[-1].step < 40
