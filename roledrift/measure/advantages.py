"""Rewards, advantages, how much of them a role gets, what they pay for, and groups without any.

An advantage group (GRPO group) is one value of ``group_N`` within one role. Tables must not cut
through a group, or its halves count as two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roledrift.measure.cards import ProbeCard, Statistic
from roledrift.measure.groups import Columns, OfRows, PerSpan, Pooled, given, span_probe
from roledrift.spans import Floats, Ints, SpanTable
from roledrift.sums import Mean, Moments


@span_probe("reward_N")
def rewards(spans: SpanTable) -> Columns:
    """``reward``: reward per span."""
    return {"reward": PerSpan(given(spans.reward_N))}


@span_probe("advantage_N")
def advantages(spans: SpanTable) -> Columns:
    """``advantage``: advantage per span."""
    return {"advantage": PerSpan(given(spans.advantage_N))}


@span_probe("advantage_N", "tokens_N")
def credit(spans: SpanTable) -> Columns:
    """``credit``: ``|advantage|`` per token, pooled over tokens.

    Its total is the credit mass of a role: the sum over its tokens of ``|A|``, which is what weighs
    its gradient under a token-mean loss. An advantage that differs from token to token enters with
    its mean over the span. Spans whose advantage is not finite are left out.
    """
    advantage_N = given(spans.advantage_N)
    finite_N = np.isfinite(advantage_N)
    tokens_N = given(spans.tokens_N) * finite_N
    return {"credit": Pooled(tokens_N, np.abs(np.where(finite_N, advantage_N, 0)) * tokens_N)}


class _AdvantageGroups(NamedTuple):
    """The advantage groups of some rows.

    Attributes:
        first_G: Place of each group's first row; ``size_G``: how many it has.
        of_N: Group of each row.
    """

    first_G: Ints
    of_N: Ints
    size_G: Ints

    def total(self, values_N: Floats) -> Floats:
        """Sum of the values in each group."""
        return np.bincount(self.of_N, weights=values_N, minlength=len(self.size_G)).astype(float)


def _advantage_groups(spans: SpanTable, rows: Ints) -> _AdvantageGroups:
    address_N2 = np.stack([spans.role_N[rows], given(spans.group_N)[rows]], axis=1)
    _, first_G, of_N, size_G = np.unique(
        address_N2, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    return _AdvantageGroups(first_G, of_N.reshape(-1), size_G)


@span_probe("group_N", "reward_N")
def zero_variance(spans: SpanTable) -> Columns:
    """``zero_variance``: share of advantage groups whose rewards are all equal.

    Their gradient is zero. A group with a single row is left out: it has no variance to lose.
    """

    def equal(rows: Ints) -> Mean:
        groups, reward_N = _advantage_groups(spans, rows), given(spans.reward_N)[rows]
        # Not equal to the group's first reward, also where either is NaN.
        differs_N = ~(reward_N == reward_N[groups.first_G][groups.of_N])
        several_G = groups.size_G > 1
        alike_G = several_G & (groups.total(differs_N) == 0)
        return Mean(float(several_G.sum()), float(alike_G.sum()))

    return {"zero_variance": OfRows(equal)}


@span_probe("group_N", "reward_N")
def reward_spread(spans: SpanTable) -> Columns:
    """``reward_spread``: standard deviation of rewards within advantage groups.

    The mean over groups of several rows of the population standard deviation within each: what is
    left to learn from, and one of the three signs of the echo trap (RAGEN, arXiv 2504.20073). A
    group with a reward that is not finite is left out.
    """

    def spread(rows: Ints) -> Mean:
        groups, reward_N = _advantage_groups(spans, rows), given(spans.reward_N)[rows]
        with np.errstate(invalid="ignore"):
            # Two passes: the difference of squares would lose small spreads of large rewards.
            squares_N = (reward_N - (groups.total(reward_N) / groups.size_G)[groups.of_N]) ** 2
            sd_G = np.sqrt(groups.total(squares_N) / groups.size_G)
        counted_G = (groups.size_G > 1) & np.isfinite(sd_G)
        return Mean(float(counted_G.sum()), float(sd_G[counted_G].sum()))

    return {"reward_spread": OfRows(spread)}


@span_probe("group_N", "advantage_N", "tokens_N")
def length_credit(spans: SpanTable) -> Columns:
    """``length_credit``: correlation of advantage and length within advantage groups.

    Pearson's r of the lengths and advantages of a group's rows, averaged over the groups of at
    least three rows in which both vary; one value per group, so that its spread over groups gives a
    standard error. Positive where longer texts are paid for. Rows whose advantage is not finite are
    left out.
    """

    def correlations(rows: Ints) -> Moments:
        rows = rows[np.isfinite(given(spans.advantage_N)[rows])]
        groups = _advantage_groups(spans, rows)
        size_G = groups.size_G

        def centred(values_N: Floats) -> Floats:
            off_N: Floats = values_N - (groups.total(values_N) / size_G)[groups.of_N]
            return off_N

        length_N = centred(given(spans.tokens_N)[rows].astype(np.float64))
        advantage_N = centred(given(spans.advantage_N)[rows].astype(np.float64))
        square_G = groups.total(length_N**2) * groups.total(advantage_N**2)
        # Equal values leave rounding errors behind, not zeros: what varies less is constant.
        defined_G = (size_G >= 3) & (square_G > 1e-18 * size_G.astype(np.float64) ** 2)
        products_G = groups.total(length_N * advantage_N)
        return Moments.of(products_G[defined_G] / np.sqrt(square_G[defined_G]))

    return {"length_credit": OfRows(correlations)}


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
