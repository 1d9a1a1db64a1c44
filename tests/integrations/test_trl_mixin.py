"""The mixin for those who dislike wrapping."""

from pathlib import Path
from typing import Any

import pytest
from roledrift_trl import RoleDriftCallback, RoleDriftMixin
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer, RLOOTrainer

from roledrift.store.reader import open_run
from tests.integrations.trl_tiny import PAIR, TRAINERS, WRAPPED, make_trainer, trace, watched


class MixedGRPO(RoleDriftMixin, GRPOTrainer):
    pass


class MixedRLOO(RoleDriftMixin, RLOOTrainer):
    pass


@pytest.mark.parametrize("kind", ["grpo", "rloo"])
def test_the_mixin_measures_the_same_and_wraps_nothing(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NothingWrapped(TrainerCallback):
        seen = False

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            NothingWrapped.seen = True
            assert not set(WRAPPED) & set(vars(mixed))

    changes: dict[str, Any] = {"kind": kind, "num_iterations": 2, "max_steps": 4}
    plain, records = watched(tmp_path, **changes)
    monkeypatch.setitem(
        TRAINERS, kind, ({"grpo": MixedGRPO, "rloo": MixedRLOO}[kind], TRAINERS[kind][1])
    )
    callback = RoleDriftCallback(PAIR, tmp_path / "mixed" / "run")
    mixed = make_trainer(tmp_path / "mixed", [callback, NothingWrapped()], **changes)
    mixed.train()
    assert NothingWrapped.seen
    assert trace(mixed) == trace(plain)
    assert not mixed.roledrift_rounds
    again = open_run(tmp_path / "mixed" / "run").steps()
    assert [one.groups for one in again] == [one.groups for one in records]
    assert [one.gradients for one in again] == [one.gradients for one in records]
    assert not any(one.faults for one in again)
    told = mixed.state.log_history[0]
    assert told["roledrift/generator/length"] == again[0].mean("generator", "length")


def test_the_mixin_without_a_callback_does_nothing(tmp_path: Path) -> None:
    TRAINERS["mixed"] = (MixedGRPO, GRPOConfig)
    alone = make_trainer(tmp_path / "alone", [], max_steps=2)
    alone.train()
    mixed = make_trainer(tmp_path / "mixed", [], max_steps=2, kind="mixed")
    mixed.train()
    assert trace(mixed) == trace(alone)
