"""What is wrong is said before training; what is not said has a default."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from datasets import Dataset
from roledrift_trl import RoleDriftCallback
from roledrift_trl.checks import (
    devices_note,
    run_directory,
    scales_in_place,
    workflow_of_data,
)
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

from roledrift.errors import AttachError, ConfigError, StoreError
from roledrift.monitor.open_monitor import open_monitor
from roledrift.store.reader import open_run
from tests.integrations.trl_tiny import (
    PAIR,
    WRAPPED,
    make_trainer,
    tiny_dataset,
    tiny_model,
    tiny_tokenizer,
    watched,
)


@pytest.mark.parametrize(
    ("dataset", "changes", "says"),
    [
        (tiny_dataset().remove_columns("role"), {}, "no column 'role'; its columns are .*'prompt'"),
        (
            tiny_dataset().map(
                lambda row: {"role": row["role"].replace("aggregator", "agregator")}
            ),
            {},
            r"Did you mean 'aggregator'.*workflow='auto'.*Workflow\(\.\.\.\)",
        ),
        (tiny_dataset().map(lambda _, i: {"role": None}, with_indices=True), {}, "holds None"),
        (tiny_dataset(), {"remove_unused_columns": True}, "remove_unused_columns=False"),
    ],
)
def test_what_is_wrong_with_the_roles_is_said_before_training(
    tmp_path: Path, dataset: Dataset, changes: dict[str, Any], says: str
) -> None:
    def any_reward(completions: Any, **_: Any) -> list[float]:
        return [0.0] * len(completions)

    with pytest.raises(ConfigError, match=says):
        watched(tmp_path, train_dataset=dataset, reward=any_reward, **changes)
    assert not (tmp_path / "run").exists()


def test_a_wrong_workflow_is_said_at_once() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'voting'"):
        RoleDriftCallback("votin")


def test_a_trainer_that_loses_the_roles_is_refused(tmp_path: Path) -> None:
    trainer = SFTTrainer(
        model=tiny_model(),
        args=SFTConfig(
            str(tmp_path / "trainer"), use_cpu=True, bf16=False, max_steps=1, report_to="none"
        ),
        train_dataset=Dataset.from_list([{"text": "a b c", "role": "generator"}] * 8),
        processing_class=tiny_tokenizer(),
        callbacks=[RoleDriftCallback(PAIR, tmp_path / "run")],
    )
    with pytest.raises(AttachError, match=r"SFTTrainer .* transformers\.Trainer"):
        trainer.train()
    assert not (tmp_path / "run").exists()


def test_preference_training_is_refused(tmp_path: Path) -> None:
    pairs = [{"prompt": "gen a", "chosen": "b", "rejected": "c", "role": "generator"}] * 8
    trainer = DPOTrainer(
        model=tiny_model(),
        ref_model=tiny_model(),
        args=DPOConfig(
            str(tmp_path / "trainer"), use_cpu=True, bf16=False, max_steps=1, report_to="none"
        ),
        train_dataset=Dataset.from_list(pairs),
        processing_class=tiny_tokenizer(),
        callbacks=[RoleDriftCallback(PAIR, tmp_path / "run")],
    )
    with pytest.raises(AttachError, match=r"DPOTrainer .* trl\.GRPOTrainer"):
        trainer.train()


@pytest.mark.parametrize("slot", [3, -1, None])
def test_a_slot_that_the_role_does_not_have_is_said_before_training(
    tmp_path: Path, slot: int | None
) -> None:
    rows = [{**row, "copy": slot if row["copy"] == 2 else row["copy"]} for row in tiny_dataset()]
    callback = RoleDriftCallback(
        {"generator": 3, "aggregator": 3}, tmp_path / "run", slot_column="copy"
    )
    trainer = make_trainer(tmp_path, [callback], train_dataset=Dataset.from_list(rows))
    with pytest.raises(ConfigError, match=rf"'copy' .* holds {slot} for .*from 0 to 2"):
        trainer.train()


def test_what_is_no_trainer_is_refused(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, [])
    callback = RoleDriftCallback(PAIR, tmp_path / "run", trainer=object())
    with pytest.raises(AttachError, match=r"object has no .*_compute_loss.*GRPOTrainer"):
        callback.on_train_begin(trainer.args, trainer.state, trainer.control)


def test_without_a_trainer_it_says_how_to_name_it(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, [])
    callback = RoleDriftCallback(PAIR, tmp_path / "run")
    with pytest.raises(AttachError, match=r"callback\.trainer = trainer"):
        callback.on_train_begin(trainer.args, trainer.state, trainer.control)
    callback.trainer = trainer
    callback.on_train_begin(trainer.args, trainer.state, trainer.control)
    assert set(WRAPPED) <= set(vars(trainer))
    callback.detach()
    assert not set(WRAPPED) & set(vars(trainer))


def test_an_old_run_is_not_overwritten(tmp_path: Path) -> None:
    watched(tmp_path, max_steps=1)
    with pytest.raises(StoreError, match=r"out=\.\.\..*overwrite=True.*resume_from_checkpoint"):
        watched(tmp_path, max_steps=1)


def test_roles_and_slots_come_from_the_data(tmp_path: Path) -> None:
    names = {"generator": "solver", "aggregator": "aggregator"}
    rows = [{**row, "role": names[row["role"]]} for row in tiny_dataset()]
    trained = make_trainer(
        tmp_path,
        [RoleDriftCallback("auto", slot_column="copy")],
        train_dataset=Dataset.from_list(rows),
        max_steps=1,
    )
    trained.train()
    run = open_run(tmp_path / "trainer" / "roledrift")
    roles = [(role.name, role.slots, role.duty) for role in run.header.workflow.roles]
    assert roles == [("aggregator", 3, "select"), ("solver", 3, "solve")]
    assert {"aggregator", "solver"} <= run.steps()[0].groups.keys()


@pytest.mark.parametrize(
    ("dataset", "says"),
    [
        (tiny_dataset().remove_columns("role"), "no column 'role'"),
        (tiny_dataset().to_iterable_dataset(), "is streamed"),
        (tiny_dataset().map(lambda _: {"role": None}), "holds None"),
    ],
)
def test_roles_that_the_data_do_not_name_are_asked_for(
    tmp_path: Path, dataset: Any, says: str
) -> None:
    trainer = SimpleNamespace(train_dataset=dataset)
    with pytest.raises(ConfigError, match=says):
        workflow_of_data(trainer, ("role", None), None)


def test_data_without_slots_have_none() -> None:
    assert {role.slots for role in RoleDriftCallback("voting").workflow.roles} == {1}
    assert RoleDriftCallback("voting", slot_column="copy").workflow.role("generator").slots == 3


def test_a_second_training_gets_a_directory_of_its_own(tmp_path: Path) -> None:
    args = SimpleNamespace(output_dir=tmp_path, process_index=0)
    places = []
    for _ in range(2):
        places.append(run_directory(None, args, 0, overwrite=False))
        open_monitor("voting", places[-1]).close()
    assert [one.name for one in places] == ["roledrift", "roledrift-2"]
    assert run_directory(None, args, 5, overwrite=False) == places[1]  # what is resumed
    assert run_directory(None, args, 0, overwrite=True) == places[0]
    assert run_directory(tmp_path / "x", args, 0, overwrite=False) == tmp_path / "x"


def test_an_old_run_is_replaced_where_that_is_wanted(tmp_path: Path) -> None:
    watched(tmp_path, max_steps=2)
    callback = RoleDriftCallback(PAIR, tmp_path / "run", overwrite=True)
    make_trainer(tmp_path, [callback], max_steps=1).train()
    assert [record.step for record in open_run(tmp_path / "run").steps()] == [1]


def test_the_run_directory_and_header_have_defaults(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, [RoleDriftCallback(PAIR, task="sums")], max_steps=1, seed=7)
    trainer.train()
    header = open_run(tmp_path / "trainer" / "roledrift").header
    assert (header.host, header.task, header.seed) == ("trl.GRPOTrainer", "sums", 7)
    assert header.workflow.routing == "shared"


def test_a_method_that_was_typed_into_a_shell_has_no_source_and_is_no_obstacle() -> None:
    typed: dict[str, Any] = {}
    exec("def _get_per_token_logps_and_entropies(self): ...", typed)
    typed = {name: its for name, its in typed.items() if name.startswith("_get")}
    head = SimpleNamespace(get_output_embeddings=lambda: torch.nn.Linear(2, 2))
    assert not scales_in_place(type("Trainer", (), {**typed, "model": head})())


def test_switched_off_it_asks_for_nothing_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLEDRIFT_DISABLED", "1")
    callback = RoleDriftCallback("voting", tmp_path / "run")
    nobody: Any = None
    callback.on_train_begin(nobody, nobody, nobody)
    callback.on_train_end(nobody)
    assert callback.monitor is None
    assert not (tmp_path / "run").exists()


def test_gpus_are_noted_for_the_estimate_of_costs_and_processors_are_not() -> None:
    def trainer(device: str, **settings: object) -> SimpleNamespace:
        accelerator = SimpleNamespace(device=torch.device(device), num_processes=4)
        return SimpleNamespace(accelerator=accelerator, **settings)

    assert devices_note(trainer("cpu")) == {}
    (alone,) = devices_note(trainer("cuda")).values()
    assert alone == "4 (processes of the trainer)"
    (served,) = devices_note(trainer("cuda", use_vllm=True, vllm_mode="server")).values()
    assert served.startswith("4 (")
    assert "vLLM server" in served
