"""Rewards, advantages, how much of them a role gets, what they pay for, and groups without any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from roledrift.measure.cards import ProbeCard, Statistic
from roledrift.measure.groups import Columns, PerSpan, Pooled, SpanProbe, groups
from roledrift.spans import Floats, Ints, SpanTable
from roledrift.sums import Key, Mean, Moments, Sums
from roledrift.workflow import Workflow


def rewards(workflow: Workflow) -> SpanProbe:
    """``reward``: reward per span."""
    return SpanProbe("rewards", frozenset({"reward_N"}), workflow, _rewards)


def advantages(workflow: Workflow) -> SpanProbe:
    """``advantage``: advantage per span."""
    return SpanProbe("advantages", frozenset({"advantage_N"}), workflow, _advantages)


def credit(workflow: Workflow) -> SpanProbe:
    """``credit``: ``|advantage|`` per token, pooled over tokens.

    Its total is the credit mass of a role: the sum over its tokens of ``|A|``, which is what weighs
    its gradient under a token-mean loss. An advantage that differs from token to token enters with
    its mean over the span. Spans whose advantage is not finite are left out.
    """
    return SpanProbe("credit", frozenset({"advantage_N", "tokens_N"}), workflow, _credit)


@dataclass(frozen=True, slots=True)
class AdvantageGroupProbe:
    """A :class:`roledrift.protocols.Probe` of advantage groups (GRPO groups).

    An advantage group is one value of ``group_N`` within one role. Tables must not cut through a
    group, or its halves count as two.

    Attributes:
        name: Name of the probe and of its one statistic.
        needs: Columns without which it measures nothing.
        workflow: Says which roles have slots.
        read: Spans and rows to the sum over the advantage groups of those rows.
    """

    name: str
    needs: frozenset[str]
    workflow: Workflow
    read: Callable[[SpanTable, Ints], Mean | Moments]

    def measure(self, spans: SpanTable) -> Sums:
        """The sum in each group of the record; one in which nothing was seen has no entry."""
        sums = ((group, self.read(spans, rows)) for group, rows in groups(spans, self.workflow))
        return {Key(group, self.name): value for group, value in sums if value.n}


def zero_variance(workflow: Workflow) -> AdvantageGroupProbe:
    """``zero_variance``: share of advantage groups whose rewards are all equal.

    Their gradient is zero. A group with a single row is left out: it has no variance to lose.
    """
    needs = frozenset({"group_N", "reward_N"})
    return AdvantageGroupProbe("zero_variance", needs, workflow, _equal)


def reward_spread(workflow: Workflow) -> AdvantageGroupProbe:
    """``reward_spread``: standard deviation of rewards within advantage groups.

    The mean over groups of several rows of the population standard deviation within each: what is
    left to learn from, and one of the three signs of the echo trap (RAGEN, arXiv 2504.20073). A
    group with a reward that is not finite is left out.
    """
    needs = frozenset({"group_N", "reward_N"})
    return AdvantageGroupProbe("reward_spread", needs, workflow, _spread)


def length_credit(workflow: Workflow) -> AdvantageGroupProbe:
    """``length_credit``: correlation of advantage and length within advantage groups.

    Pearson's r of the lengths and advantages of a group's rows, averaged over the groups of at
    least three rows in which both vary; one value per group, so that its spread over groups gives a
    standard error. Positive where longer texts are paid for. Rows whose advantage is not finite are
    left out.
    """
    needs = frozenset({"group_N", "advantage_N", "tokens_N"})
    return AdvantageGroupProbe("length_credit", needs, workflow, _correlations)


def _correlations(spans: SpanTable, rows: Ints) -> Moments:
    """Of Pearson's r of length and advantage, one per advantage group that has one."""
    if spans.group_N is None or spans.advantage_N is None or spans.tokens_N is None:
        return Moments.of(np.zeros(0))
    rows = rows[np.isfinite(spans.advantage_N[rows])]
    address_N2 = np.stack([spans.role_N[rows], spans.group_N[rows]], axis=1)
    _, inverse_N, size_G = np.unique(address_N2, axis=0, return_inverse=True, return_counts=True)
    of_N = inverse_N.reshape(-1)

    def per_group(values_N: Floats) -> Floats:
        return np.bincount(of_N, weights=values_N, minlength=len(size_G)).astype(np.float64)

    def centred(values_N: Floats) -> Floats:
        off_N: Floats = values_N - (per_group(values_N) / size_G)[of_N]
        return off_N

    length_N = centred(spans.tokens_N[rows].astype(np.float64))
    advantage_N = centred(spans.advantage_N[rows].astype(np.float64))
    square_G = per_group(length_N**2) * per_group(advantage_N**2)
    # Equal values leave rounding errors behind, not zeros: what varies less than that is constant.
    defined_G = (size_G >= 3) & (square_G > 1e-18 * size_G.astype(np.float64) ** 2)
    r_G: Floats = per_group(length_N * advantage_N)[defined_G] / np.sqrt(square_G[defined_G])
    return Moments.of(r_G)


def _equal(spans: SpanTable, rows: Ints) -> Mean:
    if spans.group_N is None or spans.reward_N is None:
        return Mean(0.0, 0.0)
    address_N2 = np.stack([spans.role_N[rows], spans.group_N[rows]], axis=1)
    _, first_G, inverse_N, size_G = np.unique(
        address_N2, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    reward_N = spans.reward_N[rows]
    # Not equal to the group's first reward, also where either is NaN.
    differs_N = ~(reward_N == reward_N[first_G][inverse_N.reshape(-1)])
    differing_G = np.bincount(inverse_N.reshape(-1), weights=differs_N, minlength=len(size_G))
    several_G = size_G > 1
    return Mean(float(several_G.sum()), float((several_G & (differing_G == 0)).sum()))


def _rewards(spans: SpanTable) -> Columns:
    if spans.reward_N is None:
        return {}
    return {"reward": PerSpan(spans.reward_N, np.ones(len(spans), dtype=np.bool_))}


def _advantages(spans: SpanTable) -> Columns:
    if spans.advantage_N is None:
        return {}
    return {"advantage": PerSpan(spans.advantage_N, np.ones(len(spans), dtype=np.bool_))}


def _credit(spans: SpanTable) -> Columns:
    if spans.advantage_N is None or spans.tokens_N is None:
        return {}
    finite_N = np.isfinite(spans.advantage_N)
    tokens_N = spans.tokens_N * finite_N
    return {"credit": Pooled(tokens_N, np.abs(np.where(finite_N, spans.advantage_N, 0)) * tokens_N)}


def _spread(spans: SpanTable, rows: Ints) -> Mean:
    if spans.group_N is None or spans.reward_N is None:
        return Mean(0.0, 0.0)
    address_N2 = np.stack([spans.role_N[rows], spans.group_N[rows]], axis=1)
    _, inverse_N, size_G = np.unique(address_N2, axis=0, return_inverse=True, return_counts=True)
    inverse_N, reward_N = inverse_N.reshape(-1), spans.reward_N[rows]

    sums_G = np.bincount(inverse_N, weights=reward_N, minlength=len(size_G))
    with np.errstate(invalid="ignore"):
        # Two passes: the difference of squares would lose small spreads of large rewards.
        squares_N = (reward_N - (sums_G / size_G)[inverse_N]) ** 2
        sd_G = np.sqrt(np.bincount(inverse_N, weights=squares_N, minlength=len(size_G)) / size_G)
    counted_G = (size_G > 1) & np.isfinite(sd_G)
    return Mean(float(counted_G.sum()), float(sd_G[counted_G].sum()))


CARDS = (
    ProbeCard(
        "rewards",
        rewards,
        (
            Statistic(
                "reward",
                "Reward",
                "mean per answer",
                formula="mean over spans of their reward",
                healthy="rises slowly or stays level",
                supply="reward_B in RoleBatch",
                order=1,
            ),
        ),
    ),
    ProbeCard("advantages", advantages),
    ProbeCard("credit", credit),
    ProbeCard(
        "zero_variance",
        zero_variance,
        (
            Statistic(
                "zero_variance",
                "Groups without signal",
                "share of groups with equal rewards",
                formula="share of advantage groups in which all rewards are equal",
                healthy="level; near 1 there is nothing left to learn from",
                supply="group_B and reward_B in RoleBatch",
                words="groups with equal rewards",
                share=True,
                order=12,
            ),
        ),
    ),
    ProbeCard("length_credit", length_credit),
    ProbeCard("reward_spread", reward_spread),
)
