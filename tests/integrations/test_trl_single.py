"""Without a workflow: a training of one policy, with what TRL logs in its records."""

from pathlib import Path
from typing import Any

import pytest
from roledrift_trl import RoleDriftCallback

from roledrift.errors import ConfigError
from roledrift.ingest.keys import Translator
from roledrift.store.reader import open_run
from tests.integrations.trl_tiny import WRAPPED, make_trainer, tiny_dataset, trace

UNTHINNED = {"budget": 0.0}


def short(completion_ids: Any, **_: Any) -> list[float]:
    return [float(sum(i % 3 == 0 for i in ids)) for ids in completion_ids]


def dead(completion_ids: Any, **_: Any) -> list[float]:
    return [0.0] * len(completion_ids)


def train(out: Path, callbacks: list[Any], **changes: Any) -> Any:
    dataset = tiny_dataset().remove_columns(["role", "copy"])
    trainer = make_trainer(
        out, callbacks, train_dataset=dataset, reward=[short, dead], beta=0.1, **changes
    )
    trainer.train()
    return trainer


@pytest.mark.parametrize("kind", ["grpo", "rloo"])
def test_one_policy_with_all_that_trl_logs(tmp_path: Path, kind: str) -> None:
    callback = RoleDriftCallback(out=tmp_path / "run", config=UNTHINNED)
    trainer = train(tmp_path, [callback], kind=kind, logging_steps=2, max_steps=4)
    run = open_run(tmp_path / "run")
    records = {one.step: one for one in run.steps()}
    assert run.header.workflow.role_names == ("policy",)
    assert sorted(records) == [1, 2, 3, 4]
    for record in records.values():  # measured in every step, as with a workflow
        assert not record.faults
        for name in ("length", "truncated", "zero_variance", "entropy", "update.k3"):
            assert record.mean("policy", name) is not None, name
    rows = [row for row in trainer.state.log_history if "reward" in row]
    assert [row["step"] for row in rows] == [2, 4]
    for row in rows:
        own = {key: one for key, one in row.items() if not key.startswith("roledrift/")}
        groups, totals = Translator()(own)
        kept = records[row["step"]].groups["policy"]
        assert set(groups["*"]) <= set(kept)
        for name in ("grad_norm", "reward.short", "reward.dead", "reward_std", "pg_loss"):
            assert kept[name].mean == pytest.approx(groups["*"][name], nan_ok=True), name
        assert records[row["step"]].totals["lr"] == totals["lr"]
        # Their own statistics go back into the same log, not into the next.
        assert "roledrift/policy/length" in row
    # What was measured counts more than the mean over several steps that is logged.
    assert records[4].stat("policy", "length").n == 8  # type: ignore[union-attr]
    assert not set(WRAPPED) & set(vars(trainer))


def test_the_training_is_the_same(tmp_path: Path) -> None:
    callback = RoleDriftCallback(out=tmp_path / "run", config=UNTHINNED)
    watched = train(tmp_path / "a", [callback])
    assert trace(watched) == trace(train(tmp_path / "b", []))


def test_a_finding_stops_the_training(tmp_path: Path) -> None:
    config = {**UNTHINNED, "stop_on": ["failing", "input problem", "suspicious"]}
    callback = RoleDriftCallback(out=tmp_path / "run", config=config)
    trainer = train(tmp_path, [callback], max_steps=60, max_completion_length=2, learning_rate=0.0)
    assert trainer.state.global_step < 60
    assert open_run(tmp_path / "run").steps()[-1].step == trainer.state.global_step


def test_slots_need_a_workflow() -> None:
    with pytest.raises(ConfigError, match="slot_column"):
        RoleDriftCallback(out="x", slot_column="copy")
