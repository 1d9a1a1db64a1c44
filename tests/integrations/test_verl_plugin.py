"""The methods of a trainer that the plugin stands around. verl's own trainers: tests/envs/verl/."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from roledrift_rllm.watch import watched
from roledrift_verl import plugin
from roledrift_verl.batch import Rows
from roledrift_verl.settings import Settings, settings_of
from roledrift_verl.watch import Watch

from roledrift import open_run
from tests.integrations.test_verl_update import _Section as Section


def configuration(out: Path) -> Section:
    rollout = Section(temperature=1.0, name="vllm")
    return Section(
        roledrift={"workflow": "voting", "out": str(out)},
        trainer=Section(default_local_dir=str(out.parent)),
        data=Section(max_response_length=8),
        algorithm=Section(),
        actor_rollout_ref=SimpleNamespace(rollout=rollout),
    )


def trainer_of(config: Section) -> Any:
    """A trainer of a later verl, which has renamed what it hands from method to method."""

    class PPOTrainer:
        def __init__(self) -> None:
            self.config, self.global_steps, self.updates = config, 0, 0
            self.tokenizer = SimpleNamespace(eos_token_id=0, pad_token_id=0)

        def _load_checkpoint(self) -> None: ...

        def _validate(self) -> None: ...

        def _save_checkpoint(self) -> None: ...

        def _update_actor(self, rows: Any) -> Any:
            self.updates += 1
            return rows

        def _compute_metrics(self, rows: Any, log: dict[str, float]) -> None:
            log["loss"] = 0.5

        def fit(self) -> dict[str, float]:
            self._load_checkpoint()
            log: dict[str, float] = {}
            self._compute_metrics(self._update_actor(()), log)
            return log

    return PPOTrainer


def test_a_trainer_whose_arguments_have_other_names_trains_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = trainer_of(configuration(tmp_path / "run"))
    plugin._change_v1(SimpleNamespace(PPOTrainer=trainer, reduce_metrics=dict))  # type: ignore[arg-type]
    one = trainer()
    assert one.fit() == {"loss": 0.5}
    assert one.updates == 1
    assert "update: KeyError ('batch')" in caplog.text


def test_a_training_that_was_not_watched_before_its_checkpoint_can_be_resumed(
    tmp_path: Path,
) -> None:
    trainer = trainer_of(configuration(tmp_path / "run"))()
    trainer.global_steps = 20
    watch = Watch(trainer, Settings("voting", str(tmp_path / "run")))
    watch.record(lambda: Rows({}, (), (), ()), 21)
    watch.monitor.close()
    assert [one.step for one in open_run(tmp_path / "run").steps()] == [21]


def test_switched_off_the_workers_are_told_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLEDRIFT_DISABLED", "1")
    assert settings_of(configuration(tmp_path / "run")) is None


def test_switched_off_rllm_has_no_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Backend:
        async def on_train_start(self, _: Any) -> None: ...

    monkeypatch.setenv("ROLEDRIFT_DISABLED", "1")
    backend = watched(Backend, workflow="voting", out=str(tmp_path / "run"))()
    asyncio.run(backend.on_train_start(SimpleNamespace(global_step=0)))
    assert backend.roledrift is None


@pytest.mark.parametrize(
    ("pool", "noted"), [({"nnodes": 2, "n_gpus_per_node": 8}, "16 ("), ({"nnodes": 2}, None)]
)
def test_the_size_of_the_pool_is_noted_for_the_estimate_of_costs(
    tmp_path: Path, pool: dict[str, int], noted: str | None
) -> None:
    config = configuration(tmp_path / "run")
    config["trainer"] |= pool
    settings = settings_of(config)
    assert settings is not None
    watch = Watch(trainer_of(config)(), settings)
    watch.monitor.close()
    note = open_run(tmp_path / "run").header.notes.get("devices")
    assert (note or "").startswith(noted or "")
    assert (note is None) == (noted is None)
