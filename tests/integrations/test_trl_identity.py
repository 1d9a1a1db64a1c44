"""The training is the same to the last bit, whatever fails in the monitor."""

from pathlib import Path
from typing import Any

import pytest
from roledrift_trl import RoleDriftCallback
from transformers import TrainerCallback

from roledrift.capture.tokens import TokenCapture
from roledrift.store.reader import open_run
from tests.integrations.trl_tiny import PAIR, WRAPPED, make_trainer, tiny_dataset, trace, watched

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulation": {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 4},
    "two iterations": {"num_iterations": 2, "max_steps": 4},
    "every parameter": {"lora": False, "learning_rate": 3e-4},
    "every parameter, gradients, accumulation": {
        "lora": False,
        "config": {"gradients": {"store": "sketch", "every": 1}},
        "num_iterations": 2,
        "gradient_accumulation_steps": 2,
        "per_device_train_batch_size": 4,
        "max_steps": 4,
    },
    "reference": {"beta": 0.1},
    "dropout and evaluation": {
        "lora_dropout": 0.3,
        "eval_strategy": "steps",
        "eval_steps": 1,
        "per_device_eval_batch_size": 8,
        "mask_truncated_completions": True,
        "max_completion_length": 32,
    },
    "checkpointing, late logging": {"gradient_checkpointing": True, "logging_steps": 2},
    "RLOO": {"kind": "rloo", "beta": 0.0},
    "RLOO with reference, accumulation": {
        "kind": "rloo",
        "beta": 0.1,
        "gradient_accumulation_steps": 2,
        "per_device_train_batch_size": 4,
        "num_iterations": 2,
        "max_steps": 4,
    },
    "adapter off": {"config": {"tier": "full"}},
    "adapter off, dropout": {
        "config": {"rescore": {"reference_every": 2}},
        "lora_dropout": 0.3,
        "num_iterations": 2,
        "gradient_accumulation_steps": 2,
        "per_device_train_batch_size": 4,
        "max_steps": 4,
    },
}


EVERY_REFERENCE = {
    "adapter off": 1,
    "adapter off, dropout": 2,
    "reference": 1,
    "RLOO with reference, accumulation": 1,
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_training_is_the_same_to_the_last_bit(tmp_path: Path, variant: str) -> None:
    changes = dict(VARIANTS[variant])
    if "eval_strategy" in changes:
        changes = {**changes, "eval_dataset": tiny_dataset().select(range(2))}
    config = {"config": changes.pop("config")} if "config" in changes else {}
    alone = make_trainer(tmp_path / "alone", [], **changes)
    alone.train()
    trainer, records = watched(tmp_path, **config, **changes)
    assert trace(trainer) == trace(alone)
    assert [record.step for record in records] == list(range(1, trainer.state.global_step + 1))
    assert all(not record.faults for record in records)
    assert all(record.mean("*", "update.k3") > 0 for record in records)
    assert not set(WRAPPED) & set(vars(trainer))
    scored = [record.mean("*", "reference.k3") is not None for record in records]
    every = EVERY_REFERENCE.get(variant, 10)
    reference = "every parameter" not in variant  # A whole model has no adapter to switch off.
    assert scored == [reference and (record.step - 1) % every == 0 for record in records]


@pytest.fixture(scope="module")
def unwatched(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The trace of a training without a callback."""
    alone = make_trainer(tmp_path_factory.mktemp("alone"), [])
    alone.train()
    return trace(alone)


@pytest.mark.parametrize(
    "broken",
    [
        *("batch.rollout", "batch.update", "batch.trained"),
        *("rescoring.choose", "rescoring.score_again", "rescoring.adapter_off"),
    ],
)
def test_what_fails_in_flight_is_counted_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, unwatched: str
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(f"roledrift_trl.{broken}", fails)
    trainer, records = watched(tmp_path, config={"tier": "full"})
    assert trace(trainer) == unwatched
    assert len(records) == 3
    for record in records:
        assert [name.split(": ")[1] for name in record.faults] == ["ZeroDivisionError"]


def test_a_failing_drain_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: TokenCapture) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(TokenCapture, "drain", fails)
    _, records = watched(tmp_path)
    assert [dict(record.faults) for record in records] == [
        {"drain TokenCapture: ZeroDivisionError": 1}
    ] * 3


def test_a_wrap_of_someone_else_stays(tmp_path: Path) -> None:
    class Wrapper(TrainerCallback):
        calls = 0

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            inner = trainer._compute_loss

            def outer(*args: Any, **kwargs: Any) -> Any:
                Wrapper.calls += 1
                return inner(*args, **kwargs)

            trainer._compute_loss = outer

    trainer = make_trainer(
        tmp_path, [RoleDriftCallback(PAIR, tmp_path / "run"), Wrapper()], max_steps=2
    )
    trainer.train()
    assert Wrapper.calls == 2
    assert "_compute_loss" in vars(trainer)
    assert all(not record.faults for record in open_run(tmp_path / "run").steps())
