import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from reference_trainer.config import Config
from reference_trainer.episodes import Parse, Span
from reference_trainer.interventions import (
    Interventions,
    anchor,
    per_policy,
    problems,
    row_weights,
    slots_of,
)
from reference_trainer.setup import prepare
from reference_trainer.trainer import Result, train
from roledrift import VOTING


def span(i: int, role: str, slot: int = 0, turn: int = 0, length: int = 2) -> Span:
    parse = Parse("failed", None)
    return Span(
        *(i, 0, role, slot, turn, "p", (1,), (2,) * length, (0.0,) * length, "stop", ""),
        *(parse, None, 0.0),
    )


def test_the_anchor_is_k3_with_its_clamps() -> None:
    new = torch.tensor([-1.0, -1.0, -0.2, -30.0, -0.5], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([-1.0, -0.5, -1.4, -1.0, -40.0], dtype=torch.float64)
    got = anchor(new, reference)
    expected = [0.0, math.exp(0.5) - 1.5, math.exp(-1.2) + 0.2, 10.0, 10.0]
    assert got.tolist() == pytest.approx(expected)
    (gradient,) = torch.autograd.grad(got.sum(), new)
    # d/dnew (exp(x) - x - 1) = 1 - exp(x), and nothing where a clamp holds.
    slow = [0.0, 1 - math.exp(0.5), 1 - math.exp(-1.2), 0.0, 0.0]
    assert gradient.tolist() == pytest.approx(slow)


BATCH = [span(0, "generator", slot, length=3) for slot in range(3)]
BATCH += [span(0, "aggregator", turn=1, length=1), span(1, "generator", length=5)]


def test_slots_are_counted_in_the_episode_and_turn() -> None:
    rows = [*BATCH, span(2, "worker", 0), span(2, "worker", 0, turn=1), span(2, "worker", 1)]
    slots = slots_of(rows)
    assert [slots[one] for one in rows] == [3, 3, 3, 1, 1, 2, 1, 2]


def test_slot_weights() -> None:
    slots = slots_of(BATCH)
    thirds = (("inverse", 1 / 3), ("inverse_sqrt", 1 / math.sqrt(3)), ("sum", 3))
    for kind, third in thirds:
        settings = Interventions(slot_weights={"generator": kind})  # type: ignore[dict-item]
        weights = row_weights(BATCH, settings, slots=slots, tokens=False)
        assert weights is not None
        assert [weights[one] for one in BATCH] == pytest.approx([third] * 3 + [1, 1])
    assert row_weights(BATCH, Interventions(), slots=slots, tokens=False) is None
    settings = Interventions(slot_weights={"generator": "one"})
    assert row_weights(BATCH, settings, slots=slots, tokens=False) is None


@pytest.mark.parametrize("tokens", [False, True])
def test_balanced_roles_weigh_the_same_and_as_much_as_before(tokens: bool) -> None:
    settings = Interventions(balance_roles=True)
    weights = row_weights(BATCH, settings, slots={}, tokens=tokens)
    assert weights is not None

    def total(role: str) -> float:
        rows = [one for one in BATCH if one.role == role]
        return sum(weights[one] * (len(one.output_ids) if tokens else 1) for one in rows)

    whole = sum(len(one.output_ids) if tokens else 1 for one in BATCH)
    assert total("generator") == pytest.approx(total("aggregator")) == pytest.approx(whole / 2)


def test_settings_are_checked_against_the_workflow() -> None:
    wrong = Interventions(
        kl_anchor={"judge": -1.0},
        agentwise=("nobody",),
        lr_factors={"aggregator": 0.0},
    )
    text = " ".join(problems(wrong, VOTING.routed("isolated")))
    for part in ("'judge'", "not be negative", "'nobody'", "greater than 0"):
        assert part in text
    uneven = Interventions(lr_factors={"generator": 0.5})
    (found,) = problems(uneven, VOTING.routed("shared"))
    assert "share policy 'shared'" in found
    assert problems(uneven, VOTING.routed("isolated")) == []
    even = Interventions(lr_factors={"generator": 0.5, "aggregator": 0.5})
    assert problems(even, VOTING.routed("shared")) == []
    factors = per_policy(uneven.lr_factors, VOTING.routed("isolated"), default=1.0)
    assert factors == {"generator": 0.5, "aggregator": 1.0}


def run(config: Config, cache: Path) -> tuple[Result, dict[str, list[torch.Tensor]]]:
    setup = prepare(replace(config, validation=replace(config.validation, every=0)), cache=cache)
    result = train(setup)
    weights = {
        policy: [one.detach() for one in setup.bank.parameters_of(policy)]
        for policy in setup.bank.policies
    }
    return result, weights


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


OFF = {
    "nothing named": Interventions(),
    "zeros and ones": Interventions(
        kl_anchor={"generator": 0.0},
        slot_weights={"generator": "one"},
        lr_factors={"generator": 1.0},
    ),
}


@pytest.mark.parametrize("routing", ["isolated", "shared"])
def test_what_is_off_changes_no_bit(noisy: Config, cache: Path, routing: str) -> None:
    config = replace(noisy, routing=routing)
    plain, weights = run(config, cache)
    assert any(report.grad_norm > 0 for one in plain.steps for report in one.policies.values())
    for settings in OFF.values():
        other, others = run(replace(config, interventions=settings), cache)
        assert [replace(one, seconds={}) for one in other.steps] == [
            replace(one, seconds={}) for one in plain.steps
        ]
        assert all(same(weights[policy], others[policy]) for policy in weights)


ON: dict[str, Callable[[], Any]] = {
    "kl_anchor": lambda: Interventions(kl_anchor={"generator": 5.0}),
    "lr": lambda: Interventions(lr_factors={"generator": 0.1}),
}


@pytest.mark.parametrize("name", ON)
def test_what_is_on_changes_its_role_and_leaves_the_other_alone(
    noisy: Config, cache: Path, name: str
) -> None:
    config = replace(noisy, train=replace(noisy.train, steps=1, epochs=2))
    plain, weights = run(config, cache)
    changed, others = run(replace(config, interventions=ON[name]()), cache)
    # In the first iteration the other role saw the same prompts, so it must be the same bit by bit.
    assert same(weights["aggregator"], others["aggregator"])
    assert not same(weights["generator"], others["generator"])
    generator = changed.steps[0].policies["generator"]
    assert (generator.anchor_k3 is not None) == (name == "kl_anchor")
    assert plain.steps[0].policies["generator"].anchor_k3 is None
    assert changed.steps[0].policies["aggregator"] == plain.steps[0].policies["aggregator"]


def test_an_anchored_role_stays_nearer_to_the_base_model(noisy: Config, cache: Path) -> None:
    train_settings = replace(noisy.train, steps=6, adam=replace(noisy.train.adam, lr=0.01))
    config = replace(noisy, train=train_settings)
    last = {}
    for beta in (1e-9, 10.0):
        result, _ = run(
            replace(config, interventions=Interventions(kl_anchor={"generator": beta})), cache
        )
        last[beta] = result.steps[-1].policies["generator"].anchor_k3
    free, held = last[1e-9], last[10.0]
    assert free is not None
    assert held is not None
    assert held < 0.5 * free


@pytest.mark.parametrize(
    "settings",
    [Interventions(balance_roles=True), Interventions(slot_weights={"generator": "inverse"})],
)
def test_weights_change_a_shared_policy(
    noisy: Config, cache: Path, settings: Interventions
) -> None:
    config = replace(noisy, routing="shared", train=replace(noisy.train, steps=1))
    _, weights = run(config, cache)
    _, others = run(replace(config, interventions=settings), cache)
    assert not same(weights["shared"], others["shared"])


def test_agentwise_advantages(noisy: Config, cache: Path) -> None:
    pooled = replace(noisy, train=replace(noisy.train, steps=1, grouping="problem"))
    by_role = replace(noisy, train=replace(noisy.train, steps=1, grouping="role"))
    _, expected = run(by_role, cache)
    roles = Interventions(agentwise=("generator", "aggregator"))
    _, got = run(replace(pooled, interventions=roles), cache)
    assert all(same(expected[policy], got[policy]) for policy in expected)
    _, without = run(pooled, cache)
    assert not same(expected["generator"], without["generator"])
