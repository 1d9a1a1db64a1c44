"""rLLM's own ``UnifiedTrainer.fit`` with a watched backend."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf
from rllm.trainer.unified_trainer import UnifiedTrainer
from rllm.trainer.verl.verl_backend import VerlBackend
from rllm.types import Episode
from roledrift_rllm.watch import watched

from roledrift import open_run
from roledrift.detect import remedies
from roledrift.errors import ConfigError
from tests.envs.rllm.conftest import Backend, Voting

Make = Callable[..., UnifiedTrainer]


class Kept:
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def log(self, data: dict[str, Any], step: int) -> None:
        self.rows.append(dict(data))


def logged(trainer: UnifiedTrainer) -> list[dict[str, Any]]:
    """What the trainer hands to its loggers, in order."""
    trainer.logger.logger = {"kept": (kept := Kept())}
    return kept.rows


def test_a_training_is_recorded_by_role(trainer: Make, tmp_path: Path) -> None:
    made = trainer(watched(Backend, workflow="voting", out=str(tmp_path / "run")))
    rows = logged(made)
    made.fit()
    run = open_run(tmp_path / "run")
    assert run.state == "finished"
    assert run.header.host == "rllm.Backend"
    steps = run.steps()
    assert [one.step for one in steps] == list(range(1, 31))
    assert not any(one.faults for one in steps)
    first = steps[0]
    generators, aggregators = first.stat("generator", "length"), first.stat("aggregator", "length")
    assert generators is not None
    assert aggregators is not None
    assert (generators.n, aggregators.n, aggregators.mean) == (24, 8, 5.0)
    slots = [first.stat(f"generator/{slot}", "length") for slot in range(3)]
    assert [one.n for one in slots if one is not None] == [8, 8, 8]
    assert first.mean("aggregator", "truncated") == 0.0
    assert rows[0]["roledrift/generator/length"] == pytest.approx(generators.mean)
    assert rows[0]["roledrift/aggregator/ppl"] == pytest.approx(first.mean("aggregator", "ppl"))
    assert [one.role for one in run.samples()[:4]], "texts are kept"
    assert made.backend.seen == [f"step {one}" for one in range(1, 31)], "the backend's own hooks"


def test_rewards_and_advantages_are_rllms(trainer: Make, tmp_path: Path) -> None:
    made = trainer(watched(Backend, workflow="voting", out=str(tmp_path / "run")))
    rows = logged(made)
    made.fit()
    for record, row in zip(open_run(tmp_path / "run").steps(), rows, strict=True):
        assert record.mean("aggregator", "reward") == pytest.approx(row["reward/aggregator/mean"])
        spread = record.stat("aggregator", "advantage")
        assert spread is not None
        assert spread.mean == pytest.approx(row["advantage/aggregator/mean"], abs=1e-6)


def test_drift_stops_the_run_as_rllm_ends_it(
    trainer: Make, config: DictConfig, tmp_path: Path
) -> None:
    class Drifting(Backend):
        def __init__(self, config: DictConfig, **given: Any) -> None:
            super().__init__(config, **given)
            self.grows = 16

    settings = {"stop_on": ["length_inflation"]}
    backend = watched(Drifting, workflow="voting", out=str(tmp_path / "run"), config=settings)
    made = trainer(backend)
    made.fit()
    run = open_run(tmp_path / "run")
    (alert,) = (one for one in run.alerts if one.detector == "length_inflation")
    assert alert.role == "aggregator"
    assert alert.onset == 16
    assert run.steps()[-1].step == alert.step
    assert made.backend.seen[-1] == f"step {alert.step}"
    assert run.state == "finished"


def test_a_failed_training_does_not_read_as_finished(trainer: Make, tmp_path: Path) -> None:
    class Failing(Backend):
        async def update_policy(self, trainer_state: Any, **_: Any) -> None:
            if trainer_state.global_step == 3:
                raise RuntimeError("on purpose")

    made = trainer(watched(Failing, workflow="voting", out=str(tmp_path / "run")))
    with pytest.raises(RuntimeError, match="on purpose"):
        made.fit()
    assert open_run(tmp_path / "run").state != "finished"
    assert [one.step for one in open_run(tmp_path / "run").steps()] == [1, 2]


def test_a_batch_that_was_filtered_out_is_an_empty_step(trainer: Make, tmp_path: Path) -> None:
    class Silent(Voting):
        async def run(self, task: dict[str, Any], uid: str, **given: Any) -> Episode:
            if int(task["question"]) % 5:
                return await super().run(task, uid, **given)
            return Episode(id=uid, task=task, trajectories=[])

    made = trainer(watched(Backend, workflow="voting", out=str(tmp_path / "run")), Silent)
    made.fit()
    steps = open_run(tmp_path / "run").steps()
    assert len(steps) == 30
    assert not any(one.faults for one in steps)


def test_a_validation_is_not_recorded(trainer: Make, config: DictConfig, tmp_path: Path) -> None:
    config.rllm.trainer.update({"total_batches": 3, "test_freq": 1})
    made = trainer(watched(Backend, workflow="voting", out=str(tmp_path / "run")))
    made._val_dataloader = [[{"id": "v", "question": "v"}]]
    made.fit()
    counts = [one.stat("aggregator", "length") for one in open_run(tmp_path / "run").steps()]
    assert [one.n for one in counts if one is not None] == [8, 8, 8]


def test_other_names_and_what_is_said_of_them(
    trainer: Make, config: DictConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.rllm.trainer.total_batches = 2
    out = str(tmp_path / "unnamed")
    trainer(watched(Backend, workflow="orch_workers", out=out)).fit()
    assert "no row names one of ['orchestrator', 'worker'" in capsys.readouterr().err
    roles = "aggregator=evaluator,generator0=generator,generator1=generator,generator2=generator"
    out = str(tmp_path / "mapped")
    trainer(watched(Backend, workflow="eval_opt", out=out, roles=roles)).fit()
    counts = open_run(out).steps()[0].stat("evaluator", "length")
    assert counts is not None
    assert counts.n == 8


def test_what_is_wrong_is_said_before_the_first_step(
    trainer: Make, config: DictConfig, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="needs workflow="):
        watched(Backend, workflow="voting")
    config.rllm.trainer.total_batches = -1
    settings = {"stop_on": ["length_inflation"]}
    backend = watched(Backend, workflow="voting", out=str(tmp_path / "run"), config=settings)
    with pytest.raises(ConfigError, match=r"rllm\.trainer\.total_batches"):
        trainer(backend).fit()


def test_rllm_has_the_settings_that_advice_names(config: DictConfig) -> None:
    every = [one for one in vars(remedies).values() if isinstance(one, remedies.Remedy)]
    named = [one.settings["rllm"].split("=")[0] for one in every if "rllm" in one.settings]
    assert len(named) == 3
    for key in named:
        section, _, last = key.rpartition(".")
        assert last in OmegaConf.select(config, section)


def test_rllm_still_recognises_its_backend() -> None:
    backend = watched(VerlBackend, workflow="voting", out="run")
    assert issubclass(backend, VerlBackend)
    assert backend.__name__ == "VerlBackend"


def test_a_streamed_training_is_recorded_too(
    trainer: Make, config: DictConfig, tmp_path: Path
) -> None:
    config.rllm.async_training.update({"enable": True, "mini_batch_size": 2})
    config.rllm.workflow.raise_on_error = False
    config.rllm.trainer.total_batches = 6
    made = trainer(watched(Backend, workflow="voting", out=str(tmp_path / "run")))
    rows = logged(made)
    made.fit()
    run = open_run(tmp_path / "run")
    assert not any(one.faults for one in run.steps())
    assert [one.step for one in run.steps()] == list(range(1, len(rows) + 1))
    first = run.steps()[0]
    lengths = first.stat("aggregator", "length")
    assert lengths is not None
    assert lengths.n == 8
    assert first.stat("aggregator", "ppl") is None, "the weights that sampled may be older"
    assert first.stat("aggregator", "advantage") is not None
