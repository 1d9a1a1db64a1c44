from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
import torch

from reference_trainer.adapter_check import AdapterCheck
from reference_trainer.errors import AdapterError
from reference_trainer.policies import AdapterBank
from reference_trainer.rollout.engine import Completion, Request, Sampling
from reference_trainer.rollout.transformers_engine import TransformersEngine

Make = Callable[..., AdapterBank]
PROMPT = (5, 6, 7, 8)


class Misrouted(TransformersEngine):
    """Serves another policy than it is asked for; ``None`` is the base model."""

    def __init__(self, bank: AdapterBank, wrong: dict[str, str | None], base: AdapterBank) -> None:
        super().__init__(bank, end_ids=(0,))
        self.base = TransformersEngine(base, end_ids=(0,))
        self.wrong = wrong

    def submit(self, requests: Mapping[int, Request]) -> None:
        for number, one in requests.items():
            served = self.wrong.get(one.policy, one.policy)
            if served is None:
                self.base.submit({number: one})
            else:
                super().submit({number: replace(one, policy=served)})

    def collect(self) -> dict[int, Completion]:
        return self.base.collect() | super().collect()


def take_steps(bank: AdapterBank, policy: str) -> None:
    bank.activate(policy)
    tokens = torch.arange(1, 13).view(2, 6)
    for _ in range(5):
        torch.autograd.backward(bank.causal_lm(input_ids=tokens, labels=tokens).loss)
        bank.step(policy)


def check_of(
    bank: AdapterBank, wrong: dict[str, str | None], base: AdapterBank | None = None
) -> AdapterCheck:
    engine = Misrouted(bank, wrong, base or bank)
    return AdapterCheck(bank, engine, prompt=PROMPT, sampling=Sampling(0.7, 9))


def test_an_engine_that_serves_what_is_trained_passes(make_bank: Make) -> None:
    bank = make_bank("first", "second")
    state = torch.random.get_rng_state()
    check = check_of(bank, {})
    check.check()  # fresh adapters are the base model, and may be
    take_steps(bank, "first")
    check.check()
    take_steps(bank, "second")
    bank.model.train()
    check.check()
    assert bank.model.training
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"first": None}, "does not serve policy 'first'.* those of the base model"),
        ({"first": "second"}, "does not serve policy 'first'.* those of policy 'second'"),
        ({"second": "first"}, "does not serve policy 'second'.* those of policy 'first'"),
    ],
)
def test_an_engine_that_serves_something_else_is_found(
    make_bank: Make, wrong: dict[str, str | None], message: str
) -> None:
    bank = make_bank("first", "second")
    check = check_of(bank, wrong, base=make_bank("first", "second"))
    take_steps(bank, "first")
    torch.manual_seed(0)
    for parameter in bank.parameters_of("second"):
        parameter.data += 0.05 * torch.randn_like(parameter)
    with pytest.raises(AdapterError, match=message):
        check.check()


def test_an_engine_with_weights_of_an_earlier_step_is_found(make_bank: Make) -> None:
    bank, stale = make_bank("first"), make_bank("first")
    check = AdapterCheck(
        bank, Misrouted(stale, {}, stale), prompt=PROMPT, sampling=Sampling(1.0, 1)
    )
    check.check()
    take_steps(bank, "first")
    with pytest.raises(AdapterError, match="Check how the weights reach the engine"):
        check.check()


def test_a_trained_policy_that_still_is_the_base_model_is_found(make_bank: Make) -> None:
    bank = make_bank("first")
    check = check_of(bank, {})
    take_steps(bank, "first")
    for parameter in bank.parameters_of("first"):
        parameter.data.zero_()
    with pytest.raises(AdapterError, match="computes the base model"):
        check.check()
