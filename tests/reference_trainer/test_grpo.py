import math
from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reference_trainer.episodes import Episode, Parse, Span
from reference_trainer.grpo import (
    Aggregation,
    Clip,
    Whole,
    advantages,
    aggregate,
    clipped_loss,
    group_keys,
)

REWARDS = st.lists(st.floats(-5, 5), min_size=1, max_size=24)


def test_golden_advantages() -> None:
    one_of_eight = advantages([1.0] + [0.0] * 7, ["g"] * 8)
    assert one_of_eight[0] == pytest.approx(2.474867, abs=1e-6)
    assert one_of_eight[1] == pytest.approx(-0.353552, abs=1e-6)
    three_of_eight = advantages([1.0] * 3 + [0.0] * 5, ["g"] * 8)
    assert three_of_eight[[0, 7]] == pytest.approx([1.207612, -0.724567], abs=1e-6)
    pooled = advantages(([1.0] * 3 + [0.0] * 5) * 3, ["g"] * 24)
    assert pooled[[0, 7]] == pytest.approx([1.263810, -0.758286], abs=1e-6)


def test_groups_do_not_mix() -> None:
    mixed = advantages([1, 5, 0, 7, 1, 9], ["a", "b", "a", "b", "a", "b"])
    assert mixed[::2] == pytest.approx(advantages([1, 0, 1], ["a"] * 3))
    assert mixed[1::2] == pytest.approx(advantages([5, 7, 9], ["b"] * 3))


def test_a_group_of_one_keeps_its_reward_and_equal_rewards_give_zero() -> None:
    assert advantages([0.7, 0.1, 0.1, 0.1], ["a", "b", "b", "b"]).tolist() == [0.7, 0.0, 0.0, 0.0]


@given(REWARDS)
def test_advantages_are_the_formula(rewards: list[float]) -> None:
    got = advantages(rewards, [0] * len(rewards))
    if len(rewards) > 1:
        mean = math.fsum(rewards) / len(rewards)
        deviation = math.sqrt(math.fsum((r - mean) ** 2 for r in rewards) / (len(rewards) - 1))
        assert got == pytest.approx([(r - mean) / (deviation + 1e-6) for r in rewards], abs=1e-6)
        assert float(np.sum(got)) == pytest.approx(0.0, abs=1e-6)


def span(role: str, slot: int) -> Span:
    return Span(
        0, 0, role, slot, 0, "p", (1,), (2,), (0.0,), "stop", "", Parse("tag", "1"), None, 1
    )


def test_group_keys() -> None:
    spans = (span("generator", 0), span("generator", 1), span("aggregator", 0))
    episodes = [
        Episode(problem, copy, True, tuple(replace(one, problem=problem) for one in spans))
        for problem in (4, 5)
        for copy in (0, 1)
    ]
    by_slot = group_keys(episodes)
    assert len(set(by_slot)) == 6
    assert by_slot[:3] == by_slot[3:6]
    by_role = group_keys(episodes, by="role")
    assert len(set(by_role)) == 4
    assert by_role[0] == by_role[1]


def test_groups_that_pool_more() -> None:
    spans = (span("generator", 0), replace(span("generator", 0), turn=2), span("evaluator", 0))
    episodes = [Episode(0, copy, True, spans) for copy in (0, 1)]
    assert len(set(group_keys(episodes, by="turn"))) == 3
    assert len(set(group_keys(episodes, by="role"))) == 2
    assert len(set(group_keys(episodes, by="problem"))) == 1
    apart = group_keys(episodes, by="problem", agentwise=("evaluator",))
    assert len(set(apart)) == 2
    assert apart[0] == apart[1] != apart[2]


def test_advantages_without_the_deviation() -> None:
    got = advantages([1, 0, 0, 0, 3], [0, 0, 0, 0, 1], normalisation="none")
    assert got.tolist() == [0.75, -0.25, -0.25, -0.25, 3.0]


def test_agentwise_statistics_by_hand() -> None:
    # Two roles, one problem: with pooled statistics the role that always wins is always good.
    rewards, roles = [1.0, 1.0, 0.0, 1.0, 0.0, 0.0], ["a", "a", "a", "b", "b", "b"]
    pooled = advantages(rewards, ["p"] * 6)
    assert pooled[:3] == pytest.approx([0.912869, 0.912869, -0.912869], abs=1e-5)
    own = advantages(rewards, [("p", role) for role in roles])
    assert own == pytest.approx(
        [0.577349, 0.577349, -1.154699, 1.154699, -0.577349, -0.577349], abs=1e-5
    )


NEW = [[-0.1, -2.0, -0.5], [-3.0, -0.2], [-0.4]]
OLD = [[-0.5, -1.0, -0.5], [-0.1, -3.0], [-4.0]]
ADVANTAGE = [1.2, -0.7, -1.5]
LIMIT = 5


def slow_tokens(i: int, clip: Clip) -> list[float]:
    tokens, a = [], ADVANTAGE[i]
    for x, y in zip(NEW[i], OLD[i], strict=True):
        ratio = math.exp(x - y)
        loss = max(-a * ratio, -a * min(max(ratio, 1 - clip.low), 1 + clip.high))
        tokens.append(min(loss, -clip.dual * a) if a < 0 else loss)
    return tokens


SLOW: dict[Aggregation, Callable[[list[list[float]]], float]] = {
    "seq-mean-token-mean": lambda rows: fmean(fmean(row) for row in rows),
    "token-mean": lambda rows: fmean(value for row in rows for value in row),
    "seq-mean-token-sum": lambda rows: fmean(sum(row) for row in rows),
    "constant": lambda rows: sum(sum(row) for row in rows) / (len(rows) * LIMIT),
}


def padded(rows: list[list[float]]) -> torch.Tensor:
    return torch.tensor([row + [9.0] * (3 - len(row)) for row in rows], dtype=torch.float64)


def loss_of(
    rows: list[int], by: Aggregation, weights: list[float] | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and gradient of some of the three rows, as parts of the mini-batch of all three."""
    new = padded([NEW[i] for i in rows]).requires_grad_()
    mask = padded([NEW[i] for i in rows]) != 9.0
    tokens = clipped_loss(
        new,
        padded([OLD[i] for i in rows]),
        advantage_B=torch.tensor([ADVANTAGE[i] for i in rows], dtype=torch.float64),
        mask_BC=mask,
        clip=Clip(),
    )
    weight_B = None if weights is None else torch.tensor([weights[i] for i in rows])
    whole = Whole(rows=3, tokens=6, limit=LIMIT)
    loss = aggregate(tokens.values_BC, mask, by=by, size=whole, weight_B=weight_B)
    (gradient,) = torch.autograd.grad(loss, new)
    return loss.detach(), gradient


@pytest.mark.parametrize("by", SLOW)
def test_the_loss_is_the_slow_one(by: Aggregation) -> None:
    loss, gradient = loss_of([0, 1, 2], by)
    assert float(loss) == pytest.approx(SLOW[by]([slow_tokens(i, Clip()) for i in range(3)]))
    assert bool((gradient[1, 2] == 0) & (gradient[2, 1:] == 0).all())  # padding


@pytest.mark.parametrize("by", SLOW)
def test_micro_batches_add_up(by: Aggregation) -> None:
    whole, gradient = loss_of([0, 1, 2], by)
    parts = [loss_of([0], by), loss_of([1, 2], by)]
    assert float(whole) == pytest.approx(sum(float(loss) for loss, _ in parts))
    assert torch.allclose(gradient, torch.cat([part for _, part in parts]))


@pytest.mark.parametrize("by", SLOW)
def test_row_weights(by: Aggregation) -> None:
    _, plain = loss_of([0, 1, 2], by)
    _, weighted = loss_of([0, 1, 2], by, [2.0, 0.0, 0.5])
    assert torch.allclose(weighted, plain * torch.tensor([[2.0], [0.0], [0.5]]))


def test_the_dual_clip_bounds_the_loss_of_a_bad_token() -> None:
    far = clipped_loss(
        torch.tensor([[0.0]]),
        torch.tensor([[-9.0]]),
        advantage_B=torch.tensor([-2.0]),
        mask_BC=torch.tensor([[True]]),
        clip=Clip(),
    )
    assert float(far.values_BC) == pytest.approx(6.0)


def test_on_policy_the_loss_is_minus_the_advantage_and_nothing_is_clipped() -> None:
    logp = torch.full((2, 3), -1.0)
    tokens = clipped_loss(
        logp,
        logp,
        advantage_B=torch.tensor([0.5, -1.0]),
        mask_BC=torch.ones(2, 3, dtype=torch.bool),
        clip=Clip(),
    )
    assert tokens.values_BC[:, 0].tolist() == [-0.5, 1.0]
    assert not tokens.clipped_BC.any()
