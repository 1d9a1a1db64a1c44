import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from reference_trainer.config import Config, load
from reference_trainer.setup import prepare
from reference_trainer.stress import Stress
from reference_trainer.trainer import Result, train
from roledrift import RoleDriftError, open_run


def run(config: Config, cache: Path, out: Path | None = None) -> tuple[Result, list[torch.Tensor]]:
    setup = prepare(config, cache=cache)
    result = train(setup, out=out)
    weights = [
        one.detach() for policy in setup.bank.policies for one in setup.bank.parameters_of(policy)
    ]
    return result, weights


@pytest.fixture(scope="module")
def plain(smoke: Config, cache: Path) -> tuple[Result, list[torch.Tensor]]:
    """The run of the preset, which nobody watches."""
    return run(smoke, cache)


def trace(result: Result) -> list[Any]:
    return [replace(report, seconds={}) for report in result.steps]


@pytest.mark.parametrize("routing", ["isolated", "shared"])
def test_the_monitor_changes_no_bit(
    noisy: Config, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, routing: str
) -> None:
    monkeypatch.setenv("ROLEDRIFT_STRICT", "1")
    config = replace(noisy, routing=routing)
    config = replace(config, monitor=replace(config.monitor, gradients_every=1))
    state = torch.random.get_rng_state()
    watched, weights = run(config, cache, tmp_path / "run")
    plain, others = run(config, cache)
    # Without rewards there would be no gradients, and nothing that a monitor could change.
    norms = [policy.grad_norm for report in plain.steps for policy in report.policies.values()]
    assert max(norms) > 1e-3
    assert trace(watched) == trace(plain)
    assert all(torch.equal(a, b) for a, b in zip(weights, others, strict=True))
    assert torch.equal(state, torch.random.get_rng_state())


def test_what_the_monitor_gets(
    smoke: Config, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLEDRIFT_STRICT", "1")
    monitor = replace(smoke.monitor, gradients_every=1)
    result, _ = run(replace(smoke, monitor=monitor), cache, tmp_path / "run")
    seen = open_run(tmp_path / "run")
    assert seen.header.notes["stress"] == "none"
    assert (seen.header.host, seen.header.scale) == ("reference_trainer", "tiny-S")
    records = list(seen.steps())
    assert [record.step for record in records] == [1, 2, 3]
    assert result.before is not None
    assert [one.totals.get("base_accuracy") for one in records] == [
        result.before.accuracy,
        None,
        None,
    ]
    for record, report in zip(records, result.steps, strict=True):
        assert not record.faults
        assert record.totals["reward"] == pytest.approx(report.reward)
        for role, one in report.roles.items():
            assert record.mean(role, "length") == pytest.approx(one["tokens"])
            assert record.mean(role, "update.k3") == pytest.approx(one["k3"], abs=1e-6)
        assert {gram.policy for gram in record.gradients} == {"generator", "aggregator"}
        generator = next(gram for gram in record.gradients if gram.policy == "generator")
        assert generator.labels == ("generator/0", "generator/1", "generator/2")
    samples = list(seen.samples())
    assert {sample.role for sample in samples} == {"generator", "aggregator"}
    canaries = {sample.prompt for sample in samples if "canary" in sample.flags}
    assert canaries == {"validation-0", "validation-1"}


def test_the_monitor_gets_the_base_policy_validations_and_rates(
    smoke: Config, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLEDRIFT_STRICT", "1")
    stress = Stress("hot_lr", role="generator", factor=3.0, start_step=2)
    result, _ = run(replace(smoke, stress=stress), cache, tmp_path / "run")
    seen = open_run(tmp_path / "run")
    first, second, third = seen.steps()
    assert result.before is not None
    for role, one in result.before.roles.items():
        assert first.base[role]["length"].mean == pytest.approx(one.tokens)
        assert "boxed" in first.base[role]
    assert second.base == third.base == {}
    for record, report in zip((first, second, third), result.steps, strict=True):
        validation = report.validation
        assert record.solved == (validation.solved if validation else "")
        if validation:
            assert record.totals["val_accuracy"] == validation.accuracy
            assert record.solved.count("1") == round(validation.accuracy * validation.problems)
    rates = [
        (record.totals["lr"], record.totals["lr/generator"], record.totals["lr/aggregator"])
        for record in (first, second)
    ]
    assert rates[0][0] == rates[0][1] == rates[0][2]
    assert rates[1][1] == pytest.approx(3 * rates[1][2])


@pytest.mark.parametrize("routing", ["shared", "isolated"])
def test_a_role_left_out_of_the_loss_is_measured_all_the_same(
    noisy: Config, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, routing: str
) -> None:
    monkeypatch.setenv("ROLEDRIFT_STRICT", "1")
    config = replace(noisy, routing=routing)
    config = replace(config, train=replace(config.train, left_out=("aggregator",)))
    run(config, cache, tmp_path / "run")
    seen = open_run(tmp_path / "run")
    assert [one.trained for one in seen.header.workflow.roles] == [True, False]
    of_training = {"no_updates", "signal_loss", "duplicate_rows", "gradient_zero"}
    assert not [
        one for one in seen.alerts if one.role == "aggregator" and one.finding in of_training
    ]
    assert {one.role for one in seen.samples()} == {"generator", "aggregator"}
    for record in seen.steps():
        mine = record.groups["aggregator"]
        assert {"length", "reward", "advantage", "update.k3", "rollout.k3", "entropy"} <= set(mine)
        assert mine["length"].n == config.rollout.problems * config.rollout.copies
        assert record.mean("aggregator", "updates") == 0.0
        assert record.mean("generator", "updates") == 2.0
    moved = [one.mean("aggregator", "update.k3") for one in open_run(tmp_path / "run").steps()]
    if routing == "shared":
        assert max(one or 0.0 for one in moved) > 1e-6, "the generators' rows move it"
    else:
        assert max(one or 0.0 for one in moved) < 1e-6, "nothing does"


def test_the_same_seed_gives_the_same_trace_and_another_does_not(
    smoke: Config, cache: Path, plain: tuple[Result, list[torch.Tensor]]
) -> None:
    one, _ = plain
    again, _ = run(smoke, cache)
    assert trace(one) == trace(again)
    assert one.before == again.before
    other, _ = run(replace(smoke, seed=1), cache)
    assert trace(one) != trace(other)


def test_validating_more_often_changes_nothing_else(
    smoke: Config, cache: Path, plain: tuple[Result, list[torch.Tensor]]
) -> None:
    rare = replace(smoke, validation=replace(smoke.validation, every=0))
    one, weights = plain
    other, others = run(rare, cache)
    assert all(torch.equal(a, b) for a, b in zip(weights, others, strict=True))
    assert other.before is None
    assert [report.validation is not None for report in one.steps] == [False, True, True]


def test_single_and_mixed_routings_run(smoke: Config, cache: Path) -> None:
    smoke = replace(smoke, train=replace(smoke.train, steps=1))
    single, _ = run(replace(smoke, workflow="single", routing="shared"), cache)
    assert set(single.steps[0].roles) == {"generator"}
    routed = {"generator": "solver", "aggregator": "chooser"}
    mapped, _ = run(replace(smoke, routing=routed), cache)
    assert set(mapped.steps[0].policies) == {"solver", "chooser"}
    # Three slots: three times the rows, three times the optimizer steps.
    assert mapped.steps[0].policies["solver"].updates == 2
    assert mapped.steps[0].policies["chooser"].updates == 1


def test_an_alert_stops_the_run(cache: Path, tmp_path: Path) -> None:
    options = {"baseline": {"window": 1}, "detectors": {"length_inflation": {"limit": 1.0}}}
    config = load(
        "tiny-smoke",
        {"train": {"steps": 8}, "monitor": {"stop_on": ["length_inflation"], "options": options}},
    )
    result, _ = run(config, cache, tmp_path / "run")
    assert "aggregator" in result.stopped
    assert len(result.steps) < 8
    lines = (tmp_path / "run" / "trainer" / "trace.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(len(result.steps) + 1))


def test_a_folder_that_holds_a_run_is_refused(smoke: Config, cache: Path, tmp_path: Path) -> None:
    smoke = replace(smoke, train=replace(smoke.train, steps=1))
    run(smoke, cache, tmp_path)
    with pytest.raises(RoleDriftError):
        run(smoke, cache, tmp_path)


@pytest.mark.parametrize(
    ("workflow", "task"), [("eval_opt", "math"), ("orch_workers", "math"), ("eval_opt", "code")]
)
def test_every_workflow_and_task_trains_under_watch(
    tmp_path: Path, workflow: str, task: str
) -> None:
    """Numbers of turns and workers vary; roles may be missing from a step."""
    config = load(
        "tiny-smoke",
        {
            "workflow": workflow,
            "task": {"name": task},
            "train": {"steps": 2},
            # The barely warmed-up model has no form yet: only lenient episodes reach every role.
            "rollout": {"lenient_selection": True},
        },
    )
    config = replace(config, pretrain=replace(config.pretrain, steps=3))
    result = train(prepare(config, cache=tmp_path / "cache"), out=tmp_path / "run")
    assert len(result.steps) == 2
    assert set(result.steps[-1].roles) <= set(config.routed().role_names)
