from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from reference_trainer.errors import SettingsError
from reference_trainer.policies import AdapterBank

Make = Callable[..., AdapterBank]


def weights(bank: AdapterBank, policy: str) -> list[Tensor]:
    return [one.detach().clone() for one in bank.parameters_of(policy)]


def same(a: list[Tensor], b: list[Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def take_a_step(bank: AdapterBank, policy: str) -> float:
    bank.activate(policy)
    tokens = torch.arange(1, 13).view(2, 6)
    loss = bank.causal_lm(input_ids=tokens, labels=tokens).loss
    torch.autograd.backward(loss)
    return bank.step(policy)


def test_only_the_active_policy_changes(make_bank: Make) -> None:
    # One name is part of the other, and of module names too.
    bank = make_bank("gen", "generator", "proj")
    frozen = [p.detach().clone() for n, p in bank.model.named_parameters() if "lora" not in n]
    before = {name: weights(bank, name) for name in bank.policies}
    for name in bank.policies:
        assert len(before[name]) == 2 * 7 * 2  # A and B, 7 linear layers, 2 blocks
    assert take_a_step(bank, "gen") > 0
    assert not same(before["gen"], weights(bank, "gen"))
    assert same(before["generator"], weights(bank, "generator"))
    assert same(before["proj"], weights(bank, "proj"))
    now = [p for n, p in bank.model.named_parameters() if "lora" not in n]
    assert same(frozen, [one.detach() for one in now])


def test_the_active_policy_alone_requires_gradients(make_bank: Make) -> None:
    bank = make_bank("generator", "aggregator")
    for active in ("aggregator", "generator"):
        bank.activate(active)
        training = {id(p) for p in bank.model.parameters() if p.requires_grad}
        assert training == {id(p) for p in bank.parameters_of(active)}


def test_a_fresh_adapter_is_the_base_model_and_policies_differ_afterwards(make_bank: Make) -> None:
    bank = make_bank("first", "second")
    tokens = torch.arange(1, 7)[None]

    def logits(policy: str) -> Tensor:
        bank.activate(policy)
        with torch.no_grad():
            out: Tensor = bank.causal_lm(input_ids=tokens).logits
        return out

    with bank.model.disable_adapter(), torch.no_grad():
        base = bank.causal_lm(input_ids=tokens).logits
    assert torch.equal(logits("first"), base)
    take_a_step(bank, "first")
    assert not torch.equal(logits("first"), base)
    assert torch.equal(logits("second"), base)


def test_seeds_decide_the_adapters_and_the_global_generator_stays(make_bank: Make) -> None:
    state = torch.random.get_rng_state()
    one, again, other = (
        make_bank("first", "second"),
        make_bank("first", "second"),
        make_bank("first", "second", seed=1),
    )
    assert torch.equal(state, torch.random.get_rng_state())
    assert same(weights(one, "second"), weights(again, "second"))
    assert not same(weights(one, "second"), weights(other, "second"))
    assert not same(weights(one, "first"), weights(one, "second"))


def test_every_policy_is_at_the_same_point_of_the_warm_up(make_bank: Make) -> None:
    bank = make_bank("first", "second", lr=0.8)
    rates = [bank.set_lr(step, total=20) for step in (1, 2, 4, 9)]
    assert rates == pytest.approx([0.2, 0.4, 0.8, 0.8])
    hot = dict.fromkeys(bank.policies, 5.0)
    assert bank.set_lr(9, total=20, factors=hot) == pytest.approx(4.0)
    rates = [one.param_groups[0]["lr"] for one in bank.optimizers.values()]
    assert rates == pytest.approx([4.0, 4.0])


def test_a_gradient_that_is_not_finite_changes_nothing(make_bank: Make) -> None:
    bank = make_bank("first")
    before = weights(bank, "first")
    for parameter in bank.parameters_of("first"):
        parameter.grad = torch.full_like(parameter, float("nan"))
    assert bank.step("first") != bank.step("first")  # NaN
    assert same(before, weights(bank, "first"))
    assert all(parameter.grad is None for parameter in bank.parameters_of("first"))


def test_save_and_load(make_bank: Make, tmp_path: Path) -> None:
    bank = make_bank("gen", "generator")
    take_a_step(bank, "generator")
    bank.save(tmp_path)
    assert (tmp_path / "generator" / "adapter_config.json").is_file()
    fresh = make_bank("gen", "generator", seed=5)
    fresh.load(tmp_path)
    for name in bank.policies:
        assert same(weights(bank, name), weights(fresh, name))
    with pytest.raises(SettingsError, match=r"no adapter for \['shared'\]"):
        make_bank("shared").load(tmp_path)


def test_wrong_names(make_bank: Make) -> None:
    with pytest.raises(SettingsError, match="no policy 'agregator' in the bank"):
        make_bank("aggregator").activate("agregator")
    for names in (("first", "first"), ("a/b",), ("",), ("..",), ("0",)):
        with pytest.raises(SettingsError, match="must be unique"):
            make_bank(*names)


def test_any_role_name_is_a_policy_of_its_own(make_bank: Make, tmp_path: Path) -> None:
    # Words of PEFT, parts of parameter paths, parts of each other.
    names = ("lora", "default", "model", "q_proj", "weight", "a", "ab", "a.b", "adapter0000")
    bank = make_bank(*names)
    owned = [id(one) for name in names for one in bank.parameters_of(name)]
    assert len(owned) == len(set(owned)) == len(names) * 2 * 7 * 2
    before = {name: weights(bank, name) for name in names}
    take_a_step(bank, "model")
    assert [name for name in names if not same(before[name], weights(bank, name))] == ["model"]
    bank.save(tmp_path)
    fresh = make_bank(*names, seed=3)
    fresh.load(tmp_path)
    assert all(same(weights(bank, name), weights(fresh, name)) for name in names)


def test_one_optimizer_for_all_does_what_one_per_policy_does(make_bank: Make) -> None:
    apart, together = make_bank("first", "second"), make_bank("first", "second", optimizers="one")
    assert len(together.optimizers) == 1
    for policy in ("first", "first", "second", "first"):
        idle = "second" if policy == "first" else "first"
        before = weights(together, idle)
        take_a_step(apart, policy)
        take_a_step(together, policy)
        assert same(before, weights(together, idle))  # neither stepped nor decayed
    for policy in ("first", "second"):
        assert same(weights(apart, policy), weights(together, policy))


@pytest.mark.parametrize("optimizers", ["per_policy", "one"])
def test_a_policy_may_have_a_learning_rate_of_its_own(make_bank: Make, optimizers: str) -> None:
    bank = make_bank("first", "second", optimizers=optimizers, lr_factors={"second": 0.5})
    plain = make_bank("first", "second", lr=0.005)
    bank.set_lr(9, total=20)
    plain.set_lr(9, total=20)
    for policy in ("first", "second"):
        take_a_step(bank, policy)
        take_a_step(plain, policy)
    assert same(weights(bank, "second"), weights(plain, "second"))
    assert not same(weights(bank, "first"), weights(plain, "first"))


def test_one_adapter_from_elsewhere(make_bank: Make, tmp_path: Path) -> None:
    single = make_bank("generator")
    take_a_step(single, "generator")
    single.save(tmp_path)
    bank = make_bank("solver", "aggregator")
    bank.load_adapter("solver", tmp_path / "generator")
    assert same(weights(bank, "solver"), weights(single, "generator"))
    assert (bank.moved("solver"), bank.moved("aggregator")) == (True, False)
    with pytest.raises(SettingsError, match="holds no adapter"):
        bank.load_adapter("solver", tmp_path)
    wider = make_bank("generator", rank=6)
    with pytest.raises(SettingsError, match="does not fit"):
        wider.load_adapter("generator", tmp_path / "generator")


def test_fused_weights_compute_the_same_and_leave_no_trace(make_bank: Make) -> None:
    bank = make_bank("first", "second")
    take_a_step(bank, "first")
    take_a_step(bank, "second")
    tokens = torch.arange(1, 13).view(2, 6)
    before = [one.detach().clone() for one in bank.model.parameters()]
    for policy in ("first", "second"):
        bank.activate(policy)
        with torch.no_grad():
            apart = bank.causal_lm(input_ids=tokens).logits
            with bank.fused(policy):
                fused = bank.causal_lm(input_ids=tokens).logits
            again = bank.causal_lm(input_ids=tokens).logits
        assert torch.allclose(fused, apart, atol=1e-4)
        assert torch.equal(again, apart)
    with pytest.raises(RuntimeError, match="on purpose"), bank.fused("first"):
        raise RuntimeError("on purpose")
    assert same(before, [one.detach() for one in bank.model.parameters()])
    training = {id(p) for p in bank.model.parameters() if p.requires_grad}
    assert training == {id(p) for p in bank.parameters_of("first")}


def test_without_adapters_the_base_model_computes_and_training_goes_on(make_bank: Make) -> None:
    bank = make_bank("first", "second")
    tokens = torch.arange(1, 7)[None]
    with torch.no_grad():
        base = bank.causal_lm(input_ids=tokens).logits
    take_a_step(bank, "first")
    with bank.without_adapters(), torch.no_grad():
        assert torch.equal(bank.causal_lm(input_ids=tokens).logits, base)
    training = {id(p) for p in bank.model.parameters() if p.requires_grad}
    assert training == {id(p) for p in bank.parameters_of("first")}
    assert take_a_step(bank, "first") > 0


def test_fused_the_model_has_no_adapter_layers_and_afterwards_all_of_them(
    make_bank: Callable[..., AdapterBank],
) -> None:
    bank = make_bank("first", "second")
    names = [name for name, _ in bank.model.named_modules()]
    with bank.fused("second"):
        assert not any("lora" in name.split(".")[-1] for name, _ in bank.causal_lm.named_modules())
    assert [name for name, _ in bank.model.named_modules()] == names
    with pytest.raises(RuntimeError, match="inside"), bank.fused("first"):
        raise RuntimeError("inside")
    assert [name for name, _ in bank.model.named_modules()] == names


def test_a_mode_lasts_as_long_as_its_block(make_bank: Callable[..., AdapterBank]) -> None:
    bank = make_bank("first")
    assert not bank.model.training
    with bank.mode(training=True):
        assert bank.model.training
        with bank.mode(training=False):
            assert not bank.causal_lm.training
        assert bank.causal_lm.training
    assert not bank.model.training
