"""The engine against transformers, on the real CPU build of vLLM, in float32."""

import resource
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from reference_trainer.config import Config
from reference_trainer.episodes import Parse, Span
from reference_trainer.errors import AdapterError, SettingsError, StorageError
from reference_trainer.model import end_ids
from reference_trainer.policies import AdapterBank
from reference_trainer.rollout.engine import Completion, Engine, Request, Sampling
from reference_trainer.scoring import collate, score
from reference_trainer.setup import Setup, hand_over, prepare
from reference_trainer.trainer import train
from roledrift import open_run
from tests.reference_trainer.rollout.sampling import sample

PROMPTS = [tuple(range(5 + row, 5 + row + length)) for row, length in enumerate([7, 40, 70, 100])]
SEEDS = [2**62 + row for row in range(len(PROMPTS))]


def shake(bank: AdapterBank, seed: int) -> None:
    """Other weights for every policy."""
    random = torch.Generator().manual_seed(seed)
    for policy in bank.policies:
        for parameter in bank.parameters_of(policy):
            parameter.data = 0.1 * torch.randn(parameter.shape, generator=random)


def distance(bank: AdapterBank, policy: str, drawn: Sequence[Completion], T: float) -> float:
    """Largest difference of what the engine says and what ``policy`` is, in nats."""
    parse = Parse("failed", None)
    spans = [
        Span(
            *(0, 0, "generator", 0, 0, policy, prompt, one.output_ids, one.logps),
            *(one.finish_reason, "", parse, None, 0.0),
        )
        for prompt, one in zip(PROMPTS, drawn, strict=True)
    ]
    batch = collate(spans, pad_id=0)
    bank.activate(policy)
    with torch.no_grad():
        scores = score(bank.causal_lm, batch, temperature=T)
    return float((scores.logp_BC - batch.rollout_BC)[batch.mask_BC].abs().max())


def draw(engine: Engine, policy: str, T: float = 0.7, length: int = 12) -> list[Completion]:
    return sample(engine, PROMPTS, policy=policy, sampling=Sampling(T, length), seeds=SEEDS)


def test_a_policy_that_was_never_handed_over(setup: Setup) -> None:
    with pytest.raises(AdapterError, match="'generator' were never handed to vLLM: call sync"):
        draw(setup.stage.engine, "generator")


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probs_are_those_of_transformers(setup: Setup, temperature: float) -> None:
    bank, engine = setup.bank, setup.stage.engine
    shake(bank, 1)
    hand_over(setup, bank.policies, done=0)
    first, second = bank.policies
    for policy, other in ((first, second), (second, first), (first, second)):
        drawn = draw(engine, policy, temperature)
        assert distance(bank, policy, drawn, temperature) < 1e-4
        assert distance(bank, other, drawn, temperature) > 1e-2
        assert distance(bank, policy, drawn, 2.0) > 1e-2


def test_several_policies_in_one_batch(setup: Setup) -> None:
    """As if each had been asked by itself, whatever the others are asked."""
    bank, engine = setup.bank, setup.stage.engine
    shake(bank, 6)
    hand_over(setup, bank.policies, done=0)
    alone = {policy: draw(engine, policy) for policy in bank.policies}
    requests = [
        Request(prompt, policy, Sampling(0.7, 12), seed)
        for prompt, seed in zip(PROMPTS, SEEDS, strict=True)
        for policy in bank.policies
    ]
    engine.submit(dict(enumerate(requests[:3])))
    found = engine.collect()  # the others join those that are under way
    engine.submit({number: one for number, one in enumerate(requests) if number >= 3})
    while len(found) < len(requests):
        found |= engine.collect()
    assert engine.collect() == {}
    for number, one in enumerate(requests):
        expected = alone[one.policy][number // len(bank.policies)]
        assert found[number].output_ids == expected.output_ids
        assert found[number].logps == pytest.approx(expected.logps, abs=1e-4)
    first, second = (alone[policy] for policy in bank.policies)
    assert [one.output_ids for one in first] != [one.output_ids for one in second]


def test_an_engine_on_a_cpu_does_not_sleep(config: Config, setup: Setup) -> None:
    rollout = replace(config.rollout, vllm=replace(config.rollout.vllm, sleep=True))
    with pytest.raises(SettingsError, match=r"rollout\.vllm\.sleep = true needs a device"):
        prepare(replace(config, rollout=rollout), cache=Path("not used"))
    setup.stage.engine.rest()  # nothing to give back


def test_seeds_decide_what_is_drawn(setup: Setup) -> None:
    engine, policy = setup.stage.engine, setup.bank.policies[0]
    hand_over(setup, setup.bank.policies, done=0)
    once = [one.output_ids for one in draw(engine, policy)]
    assert [one.output_ids for one in draw(engine, policy)] == once
    # Neither the batch nor the order matters, only prompt and seed.
    alone = sample(
        engine, PROMPTS[2:3], policy=policy, sampling=Sampling(0.7, 12), seeds=SEEDS[2:3]
    )
    assert alone[0].output_ids == once[2]


def test_outputs_end_with_their_end_token(setup: Setup) -> None:
    bank, engine = setup.bank, setup.stage.engine
    ends = end_ids(bank.causal_lm, setup.stage.tokenizer)
    assert len(ends) == 2
    drawn = []
    for seed in range(8):
        drawn += sample(
            engine,
            PROMPTS * 8,
            policy=bank.policies[0],
            sampling=Sampling(2.0, 40),
            seeds=range(1000 * seed, 1000 * seed + 8 * len(PROMPTS)),
        )
    stopped = [one for one in drawn if one.finish_reason == "stop"]
    assert {one.output_ids[-1] for one in stopped} == set(ends)
    for one in drawn:
        assert len(one.logps) == len(one.output_ids) <= 40
        assert not set(one.output_ids[:-1]) & set(ends)
        assert one.finish_reason == "stop" or len(one.output_ids) == 40


def test_an_unknown_policy_is_an_error(setup: Setup) -> None:
    with pytest.raises(SettingsError, match="no policy 'poet' in the bank"):
        draw(setup.stage.engine, "poet")
    assert sample(setup.stage.engine, [], policy="x", sampling=Sampling(1, 1), seeds=[]) == []


def test_new_weights_are_served_after_a_sync_and_only_then(setup: Setup) -> None:
    """Prompts are longer than a block of the cache, and their old prefixes are in it."""
    bank, engine = setup.bank, setup.stage.engine
    hand_over(setup, bank.policies, done=0)
    for policy in bank.policies:
        draw(engine, policy)
    for seed in (2, 3):
        shake(bank, seed)
        assert distance(bank, bank.policies[0], draw(engine, bank.policies[0]), 0.7) > 1e-2
        with pytest.raises(AdapterError, match="does not serve policy 'generator'"):
            setup.served.check()
        hand_over(setup, bank.policies, done=0)
        for policy in bank.policies:
            assert distance(bank, policy, draw(engine, policy), 0.7) < 1e-4


def test_one_policy_can_be_handed_over_alone(setup: Setup) -> None:
    bank, engine = setup.bank, setup.stage.engine
    hand_over(setup, bank.policies, done=0)
    shake(bank, 4)
    engine.sync(bank.policies[1:])
    assert distance(bank, bank.policies[1], draw(engine, bank.policies[1]), 0.7) < 1e-4
    with pytest.raises(AdapterError, match="does not serve policy 'generator'"):
        setup.served.check()


def test_a_full_disk_where_the_adapters_are_handed_over(setup: Setup) -> None:
    bank, engine = setup.bank, setup.stage.engine
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(StorageError, match=r"vLLM reads adapters from .* set TMPDIR"):
            engine.sync(bank.policies)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    hand_over(setup, bank.policies, done=0)


def test_a_run_that_forgets_to_hand_over_ends(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_over(setup, setup.bank.policies, done=0)
    monkeypatch.setattr(setup.stage.engine, "sync", lambda policies: None)
    with pytest.raises(AdapterError, match="the engine does not serve policy"):
        train(setup)


def test_a_whole_run(setup: Setup, tmp_path: Path) -> None:
    shake(setup.bank, 5)
    result = train(setup, out=tmp_path / "run")
    assert len(result.steps) == 3
    assert all(report.updates for step in result.steps for report in step.policies.values())
    run = open_run(tmp_path / "run")
    assert run.header.scale == setup.config.scale
    for record in run.steps():
        for role in ("generator", "aggregator"):
            # Before the first optimizer step of an iteration both sides are one policy.
            chi2 = record.groups[role]["rollout.chi2"]
            assert abs(chi2.mean) < 1e-4
            assert abs(record.groups[role]["rollout.peak"].high) < 1e-3
