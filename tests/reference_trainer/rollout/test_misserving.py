from collections.abc import Callable
from typing import Any

import pytest
import torch

from reference_trainer.policies import AdapterBank
from reference_trainer.rollout.engine import Completion, Sampling
from reference_trainer.rollout.misserving import MisservingEngine
from reference_trainer.rollout.transformers_engine import TransformersEngine
from reference_trainer.stress import Stress
from roledrift import VOTING
from tests.reference_trainer.rollout.sampling import sample

Make = Callable[..., AdapterBank]
FLOW = VOTING.routed("isolated")
PROMPTS = [(5, 6, 7, 8)] * 6
SEEDS = range(6)


def take_a_step(bank: AdapterBank) -> None:
    for policy in bank.policies:
        bank.activate(policy)
        tokens = torch.arange(1, 13).view(2, 6)
        torch.autograd.backward(bank.causal_lm(input_ids=tokens, labels=tokens).loss)
        bank.step(policy)


def served(engine: Any, policy: str, temperature: float = 1.0) -> list[Completion]:
    sampling = Sampling(temperature, 4)
    return sample(engine, PROMPTS, policy=policy, sampling=sampling, seeds=SEEDS)


def run(
    make_bank: Make, stress: Stress, *, steps: int
) -> tuple[MisservingEngine, TransformersEngine, list[list[Completion]]]:
    """The wrong engine, the right one, and what was right after every iteration from 0."""
    bank = make_bank("generator", "aggregator")
    right = TransformersEngine(bank, end_ids=(0,))
    wrong = MisservingEngine(right, bank, stress, FLOW)
    wrong.hand_over(0)
    history = [served(right, "generator")]
    for done in range(1, steps + 1):
        take_a_step(bank)
        wrong.hand_over(done)
        history.append(served(right, "generator"))
    return wrong, right, history


def test_an_unserved_adapter_is_the_base_model(make_bank: Make) -> None:
    stress = Stress("unserved", role="generator", start_step=3)
    wrong, right, history = run(make_bank, stress, steps=1)
    assert served(wrong, "generator") == history[1] != history[0]  # not yet
    wrong, right, history = run(make_bank, stress, steps=2)
    assert served(wrong, "generator") == history[0]
    assert served(right, "generator") == history[2]  # the bank has its own weights again
    assert served(wrong, "aggregator") == served(right, "aggregator")


def test_a_stale_adapter_is_behind(make_bank: Make) -> None:
    stress = Stress("stale", lag=2)
    wrong, _, history = run(make_bank, stress, steps=1)
    assert served(wrong, "generator") == history[0]  # as far back as there is
    wrong, right, history = run(make_bank, stress, steps=5)
    assert served(wrong, "generator") == history[3]
    assert served(right, "generator") == history[5]
    assert served(wrong, "aggregator") != served(right, "aggregator")


def test_another_temperature_is_not_told(make_bank: Make) -> None:
    stress = Stress("temperature", factor=0.5)
    wrong, right, _ = run(make_bank, stress, steps=1)
    assert served(wrong, "generator") == served(right, "generator", temperature=0.5)


@pytest.mark.parametrize("kind", ["unserved", "stale", "temperature"])
def test_weights_come_back_after_an_error(make_bank: Make, kind: Any) -> None:
    wrong, right, history = run(make_bank, Stress(kind, lag=1), steps=2)
    with pytest.raises(IndexError):
        sample(wrong, [(10**6,)], policy="generator", sampling=Sampling(1.0, 2), seeds=[0])
    assert served(right, "generator") == history[2]
