import re
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from reference_trainer.episodes import Parse, Span
from reference_trainer.errors import RolloutError, SettingsError
from reference_trainer.policies import AdapterBank
from reference_trainer.rollout.engine import Completion, Request, Sampling, answers
from reference_trainer.rollout.transformers_engine import TransformersEngine, _draw
from reference_trainer.scoring import collate, score
from reference_trainer.seeds import derive, uniforms
from reference_trainer.tiny_model import WORDS, build_tokenizer
from tests.reference_trainer.rollout.sampling import sample

Make = Callable[..., AdapterBank]
TEXTS = (" <gen> Q: 9 - 4 * 3 A:", " <gen> Q: 1 + 1 * 2 + 7 A:", " <agg> Q: 2 * 3 * 4 --- 1 so A:")
PROMPTS = [tuple(build_tokenizer()(text)["input_ids"]) for text in TEXTS] * 8


def shaken(bank: AdapterBank) -> AdapterBank:
    """Adapters that do something: fresh ones are the base model."""
    generator = torch.Generator().manual_seed(7)
    for policy in bank.policies:
        for parameter in bank.parameters_of(policy):
            parameter.data += 0.05 * torch.randn(parameter.shape, generator=generator)
    return bank


def draw(bank: AdapterBank, policy: str, sampling: Sampling, *, seed: int) -> list[Completion]:
    seeds = [derive(seed, row) for row in range(len(PROMPTS))]
    engine = TransformersEngine(bank, end_ids=(0,))
    return sample(engine, PROMPTS, policy=policy, sampling=sampling, seeds=seeds)


def as_span(prompt: tuple[int, ...], one: Completion) -> Span:
    parse = Parse("failed", None)
    return Span(
        *(0, 0, "generator", 0, 0, "second", prompt, one.output_ids, one.logps, one.finish_reason),
        *("", parse, None, 0.0),
    )


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probs_are_those_of_a_full_forward(make_bank: Make, temperature: float) -> None:
    bank = shaken(make_bank("first", "second"))
    completions = draw(bank, "second", Sampling(temperature, 20), seed=2)
    spans = [as_span(prompt, one) for prompt, one in zip(PROMPTS, completions, strict=True)]
    assert len({len(one.output_ids) for one in completions}) > 3  # rows left the batch on the way
    batch = collate(spans, pad_id=0)
    bank.activate("second")
    with torch.no_grad():
        scores = score(bank.causal_lm, batch, temperature=temperature)
    assert (scores.logp_BC - batch.rollout_BC)[batch.mask_BC].abs().max() < 1e-4
    bank.activate("first")
    with torch.no_grad():
        other = score(bank.causal_lm, batch, temperature=temperature)
    assert (other.logp_BC - batch.rollout_BC)[batch.mask_BC].abs().max() > 1e-2


def test_finish_reasons(make_bank: Make) -> None:
    for one in draw(make_bank("first"), "first", Sampling(1.0, 6), seed=2):
        assert 1 <= len(one.output_ids) <= 6
        assert len(one.logps) == len(one.output_ids)
        assert (one.finish_reason == "stop") == (one.output_ids[-1] == 0)
        assert 0 not in one.output_ids[:-1]
        if one.finish_reason == "length":
            assert len(one.output_ids) == 6


def test_the_seed_decides_and_the_global_generator_stays(make_bank: Make) -> None:
    bank = make_bank("first")
    state = torch.random.get_rng_state()
    one, again = (draw(bank, "first", Sampling(1.0, 12), seed=3) for _ in range(2))
    assert one == again
    assert one != draw(bank, "first", Sampling(1.0, 12), seed=4)
    assert torch.equal(state, torch.random.get_rng_state())


def test_an_output_depends_on_its_own_prompt_and_seed_only(make_bank: Make) -> None:
    engine = TransformersEngine(shaken(make_bank("first")), end_ids=(0,))
    seeds = [derive(9, row) for row in range(len(PROMPTS))]

    def drawn(rows: list[int]) -> dict[int, Completion]:
        found = sample(
            engine,
            [PROMPTS[row] for row in rows],
            policy="first",
            sampling=Sampling(1.0, 16),
            seeds=[seeds[row] for row in rows],
        )
        return dict(zip(rows, found, strict=True))

    everything = list(range(len(PROMPTS)))
    together = drawn(everything)
    assert len({one.output_ids for one in together.values()}) > 20
    # Alone, in another order, among prompts of the same length, among others.
    parts = [[0], everything[::-1], everything[1::3], everything[:5], everything[5:]]
    for part in parts:
        for row, one in drawn(part).items():
            assert one.output_ids == together[row].output_ids
            assert one.finish_reason == together[row].finish_reason
            assert one.logps == pytest.approx(together[row].logps, abs=1e-4)


@contextmanager
def memory_limit(more: int) -> Iterator[None]:
    """This process may take so many bytes more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_rows_may_be_split_and_policies_mixed(make_bank: Make) -> None:
    bank = shaken(make_bank("first", "second"))
    requests = [
        Request(prompt, ("first", "second")[row % 2], Sampling(1.0, 12), derive(5, row))
        for row, prompt in enumerate(PROMPTS)
    ]
    together = answers(TransformersEngine(bank, end_ids=(0,)), requests)
    engine = TransformersEngine(bank, end_ids=(0,), max_rows=5)
    engine.submit(dict(enumerate(requests)))
    found: dict[int, Completion] = {}
    batches = []
    while batch := engine.collect():
        assert found.keys().isdisjoint(batch)
        found |= batch
        batches.append({requests[number].policy for number in batch})
        assert len(batch) <= 5
    assert all(len(policies) == 1 for policies in batches)
    for number, one in enumerate(together):
        assert found[number].output_ids == one.output_ids
        assert found[number].logps == pytest.approx(one.logps, abs=1e-4)


def test_fewer_rows_at_a_time_where_memory_runs_out(
    make_bank: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    bank = shaken(make_bank("first"))
    every_token_ends = range(len(WORDS) + 1)  # so that only the room for the longest output counts
    engine = TransformersEngine(bank, end_ids=every_token_ends)
    asked: dict[str, Any] = {"policy": "first", "seeds": range(4)}
    with memory_limit(200 << 20):
        found = sample(engine, PROMPTS[:4], sampling=Sampling(1.0, 1 << 21), **asked)
    assert re.search(r"goes on with rollout\.max_rows = [12]\n", capsys.readouterr().err)
    expected = sample(engine, PROMPTS[:4], sampling=Sampling(1.0, 1), **asked)
    assert [one.output_ids for one in found] == [one.output_ids for one in expected]
    with pytest.raises(RolloutError, match=r"memory to sample one row .*max_new_tokens"):
        sample(engine, PROMPTS[:4], sampling=Sampling(1.0, 1 << 42), **asked)


def test_samples_follow_the_distribution(make_bank: Make) -> None:
    bank = shaken(make_bank("first"))
    engine = TransformersEngine(bank, end_ids=(0,))
    drawn = sample(
        engine, [PROMPTS[0]] * 4000, policy="first", sampling=Sampling(0.8, 1), seeds=range(4000)
    )
    counts = np.bincount([one.output_ids[0] for one in drawn], minlength=len(WORDS) + 1)
    bank.activate("first")
    with torch.no_grad():
        logits = bank.causal_lm(input_ids=torch.tensor([PROMPTS[0]])).logits[0, -1]
    expected = 4000 * (logits.double() / 0.8).softmax(-1).numpy()
    often = expected >= 5  # the rest is one cell: a chi-square needs some counts in each
    found = chisquare(
        [*counts[often], counts[~often].sum()], [*expected[often], expected[~often].sum()]
    )
    assert often.sum() > 5
    assert found.pvalue > 1e-3


def test_draws_of_a_known_categorical() -> None:
    shares = np.array([0.0, 0.5, 0.0, 0.2, 0.299, 0.001, 0.0])
    count = 200_000
    logits = torch.from_numpy(shares).float().log().expand(count, -1)
    uniform = torch.from_numpy(uniforms([11], count)[0])
    drawn, logps = _draw(logits, uniform)
    counts = np.bincount(drawn.numpy(), minlength=7)
    assert counts[shares == 0].sum() == 0  # not even at the edges
    assert chisquare(counts[shares > 0], count * shares[shares > 0]).pvalue > 1e-3
    assert logps.numpy() == pytest.approx(np.log(shares[drawn.numpy()]), abs=1e-5)
    # The slow way, number by number.
    slow = [next(i for i, c in enumerate(np.cumsum(shares)) if c > u) for u in uniform[:500]]
    assert drawn[:500].tolist() == slow
    edges = torch.tensor([0.0, 1.0 - 2.0**-53], dtype=torch.float64)
    assert _draw(logits[:2], edges)[0].tolist() == [1, 5]


def test_no_prompts_and_unknown_policies(make_bank: Make) -> None:
    engine = TransformersEngine(make_bank("first"), end_ids=(0,))
    assert sample(engine, [], policy="first", sampling=Sampling(1.0, 3), seeds=[]) == []
    with pytest.raises(SettingsError, match="no policy 'default'"):
        sample(
            engine, PROMPTS, policy="default", sampling=Sampling(1.0, 3), seeds=range(len(PROMPTS))
        )
