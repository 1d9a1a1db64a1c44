"""Any map from roles to policies, end to end, and adapters that come from another run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from reference_trainer import workflows
from reference_trainer.config import Config, from_mapping
from reference_trainer.episodes import Ask, Judgement, Message, Outcome, Parse, Play
from reference_trainer.errors import AdapterError, SettingsError
from reference_trainer.evaluate import evaluate
from reference_trainer.setup import Setup, prepare
from reference_trainer.tasks import Problem
from reference_trainer.trainer import Result, train
from reference_trainer.workflows import Scene, Script
from roledrift import Role, Workflow, open_run

# One name is part of the next, one is a module of the model, one holds PEFT's separator.
ROLES = ("gen", "generator", "model", "q_proj.lora")


def play(problem: Problem, scene: Scene) -> Play:
    prompt = scene.prompts.fill("generator", question=problem.question)
    judgements = []
    for turn, role in enumerate(ROLES):
        if role == "model" and "-" in problem.question:
            continue  # idle on most problems
        (reply,) = yield [Ask(role, 0, turn, (Message("user", prompt),))]
        judgements.append(Judgement(Parse("tag", reply.text), None))
    return Outcome(scene.task.grade(problem, reply.text).correct, tuple(judgements))


SCRIPT = Script(Workflow("chain", tuple(map(Role, ROLES)), ROLES), play)


@pytest.fixture
def chain(noisy: Config, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setitem(workflows._MODULES, "chain", __name__)
    return replace(noisy, workflow="chain", validation=replace(noisy.validation, every=0))


def run(config: Config, cache: Path, out: Path | None = None) -> tuple[Setup, Result]:
    setup = prepare(config, cache=cache)
    return setup, train(setup, out=out)


ROUTINGS: list[Any] = [
    "shared",
    "isolated",
    {"gen": "left", "generator": "right", "model": "left", "q_proj.lora": "right"},
    {"gen": "a", "generator": "lora", "model": "lora", "q_proj.lora": "default"},
]


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("optimizers", ["per_policy", "one"])
def test_every_routing_trains_its_policies(
    chain: Config,
    cache: Path,
    tmp_path: Path,
    routing: Any,
    optimizers: Any,
) -> None:
    adam = replace(chain.train.adam, optimizers=optimizers)
    config = replace(chain, routing=routing, train=replace(chain.train, steps=2, adam=adam))
    setup, result = run(config, cache, tmp_path / "run")
    workflow = setup.stage.workflow
    assert len(setup.bank.optimizers) == (1 if optimizers == "one" else len(setup.bank.policies))
    for report in result.steps:
        busy = {workflow.policy_of(role) for role in report.roles}
        assert set(report.policies) == busy
    for policy in setup.bank.policies:
        trained = any(policy in report.policies for report in result.steps)
        assert setup.bank.moved(policy) == trained
        assert (
            tmp_path / "run" / "trainer" / "adapters" / policy / "adapter_config.json"
        ).is_file()


def test_one_optimizer_for_all_gives_the_run_that_one_per_policy_gives(
    chain: Config, cache: Path
) -> None:
    traces = []
    for optimizers in ("per_policy", "one"):
        adam = replace(chain.train.adam, optimizers=optimizers)
        config = replace(chain, routing=ROUTINGS[2], train=replace(chain.train, steps=2, adam=adam))
        setup, result = run(config, cache)
        weights = [one for policy in ("left", "right") for one in setup.bank.parameters_of(policy)]
        traces.append(([replace(one, seconds={}) for one in result.steps], weights))
    assert traces[0][0] == traces[1][0]
    assert all(torch.equal(a, b) for a, b in zip(traces[0][1], traces[1][1], strict=True))


def test_a_schedule_is_the_iterations_and_compat_ticks_are_not(chain: Config, cache: Path) -> None:
    adam = replace(chain.train.adam, lr=0.8, warmup_steps=4, schedule="linear")
    config = replace(chain, routing="shared", train=replace(chain.train, steps=6, adam=adam))
    _, result = run(config, cache)
    assert [one.lr for one in result.steps] == pytest.approx(
        [0.2, 0.4, 0.6, 0.8, 0.8 * 2 / 3, 0.8 / 3]
    )
    compat = replace(config.paper_compat, lr_ticks_per_update=True)
    config = replace(config, paper_compat=compat, train=replace(config.train, steps=1))
    setup, _ = run(config, cache)
    assert not setup.bank.moved("shared")  # the first update of a run has a rate of zero


@pytest.fixture(scope="module")
def first_updates(noisy: Config, cache: Path) -> tuple[Config, list[torch.Tensor]]:
    """A configuration of one iteration with several updates, and what its run ends with."""
    settings = replace(noisy.train, minibatch=10, steps=1)
    validation = replace(noisy.validation, every=0)
    config = replace(noisy, routing="shared", train=settings, validation=validation)
    setup, _ = run(config, cache)
    return config, list(setup.bank.parameters_of("shared"))


@pytest.mark.parametrize(
    "switch",
    [
        {"rows_by_length": True},
        {"full_minibatches": True},
        {"padding_ranks": 7},
        {"lr_ticks_per_update": True},
    ],
)
def test_each_switch_changes_a_run_by_itself(
    first_updates: tuple[Config, list[torch.Tensor]], cache: Path, switch: dict[str, Any]
) -> None:
    config, plain = first_updates
    other, result = run(replace(config, paper_compat=replace(config.paper_compat, **switch)), cache)
    pairs = zip(plain, other.bank.parameters_of("shared"), strict=True)
    assert not all(torch.equal(a, b) for a, b in pairs)
    assert result.steps[0].policies["shared"].updates == 4


def test_switches_that_only_change_what_is_compared(
    noisy: Config, cache: Path, tmp_path: Path
) -> None:
    rollout, settings = replace(noisy.rollout, temperature=0.7), replace(noisy.train, steps=2)
    validation = replace(noisy.validation, every=0)
    config = replace(noisy, rollout=rollout, train=settings, validation=validation)
    plain, sampled = run(config, cache)
    compat = replace(config.paper_compat, rollout_logps_at_one=True)
    other, at_one = run(replace(config, paper_compat=compat), cache, tmp_path / "run")
    pairs = zip(
        plain.bank.parameters_of("generator"), other.bank.parameters_of("generator"), strict=True
    )
    assert all(torch.equal(a, b) for a, b in pairs)
    record = next(iter(open_run(tmp_path / "run").steps()))
    assert record.mean("generator", "rollout.chi2") is None
    assert record.mean("generator", "rollout.refused") == 1.0
    # The trainer's own trace has the released series, with its floor, from the first update on.
    same, floor = (one.steps[0].policies["aggregator"].rollout_chi2 for one in (sampled, at_one))
    assert same is not None
    assert floor is not None
    assert abs(same) < 1e-4
    assert floor > 1e-2
    single = replace(config, rollout=noisy.rollout, train=replace(settings, minibatch=64))
    compat = replace(single.paper_compat, on_policy_single=True)
    _, result = run(replace(single, paper_compat=compat), cache)
    assert all(one.clipped == 0 for step in result.steps for one in step.policies.values())


def test_a_single_agent_adapter_in_a_workflow(noisy: Config, cache: Path, tmp_path: Path) -> None:
    adam = replace(noisy.train.adam, lr=0.02)
    alone = replace(noisy, workflow="single", train=replace(noisy.train, adam=adam))
    single, _ = run(alone, cache, tmp_path / "single")
    folder = str(tmp_path / "single" / "trainer" / "adapters" / "generator")
    target = replace(noisy, initial_adapters={"generator": folder})
    target = replace(target, train=replace(noisy.train, steps=0))
    setup, result = run(target, cache)
    for a, b in zip(
        setup.bank.parameters_of("generator"), single.bank.parameters_of("generator"), strict=True
    ):
        assert torch.equal(a, b)
    assert not setup.bank.moved("aggregator")  # still the base model
    assert result.steps == ()
    assert result.before is not None
    base = prepare(replace(noisy, train=replace(noisy.train, steps=0)), cache=cache)
    plain = evaluate(base.stage, base.config, step=0)
    assert result.before.roles["generator"] != plain.roles["generator"]


def test_wrong_transfers_are_refused() -> None:
    with pytest.raises(SettingsError, match="share policy 'shared'"):
        from_mapping({"routing": "shared", "initial_adapters": {"generator": "x"}})
    with pytest.raises(SettingsError, match="'solver', which is not a role"):
        from_mapping({"initial_adapters": {"solver": "x"}})


def test_a_run_stops_when_an_adapter_is_lost(
    noisy: Config, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = prepare(replace(noisy, validation=replace(noisy.validation, every=0)), cache=cache)
    step = setup.bank.step

    def lose(policy: str) -> float:
        norm = step(policy)
        for parameter in setup.bank.parameters_of(policy):
            parameter.data.zero_()
        return norm

    monkeypatch.setattr(setup.bank, "step", lose)
    with pytest.raises(AdapterError, match="computes the base model"):
        train(setup)
