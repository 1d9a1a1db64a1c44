"""How far the rewards of an advantage group lie apart: what is left to learn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roledrift.measure.groups import groups
from roledrift.spans import Ints, SpanTable
from roledrift.sums import Key, Mean, Sums
from roledrift.workflow import Workflow


@dataclass(frozen=True, slots=True)
class RewardSpread:
    """Probe ``reward_spread``: standard deviation of the rewards of an advantage group.

    The mean over groups of the population standard deviation within each: what is left to learn
    from, and one of the three signs of the echo trap (RAGEN, arXiv 2504.20073). Groups are those of
    ``zero_variance``; a group with a reward that is not finite is left out.

    Attributes:
        workflow: Says which roles have slots.
    """

    workflow: Workflow

    @property
    def name(self) -> str:
        """Name of the probe."""
        return "reward_spread"

    @property
    def needs(self) -> frozenset[str]:
        """Columns without which it measures nothing."""
        return frozenset({"group_N", "reward_N"})

    def measure(self, spans: SpanTable) -> Sums:
        """Number of advantage groups and the sum of their standard deviations."""
        sums: Sums = {}
        for group, rows in groups(spans, self.workflow):
            value = _spread(spans, rows)
            if value.n:
                sums[Key(group, "reward_spread")] = value
        return sums


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
