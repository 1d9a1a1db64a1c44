"""Synthetic roles that write: profiles of words drawn from ways of writing, as in records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from roledrift.records import Stat, StepRecord
from roledrift.workflow import Role, Workflow

BUCKETS = 64
Way = NDArray[np.float64]
Mixture = Callable[[int], Sequence[tuple[float, Way]]]

SHARED = Workflow(
    "voting",
    (Role("generator", slots=3, duty="solve"), Role("aggregator", duty="select", terse=True)),
    ("shared", "shared"),
)
ISOLATED = Workflow("voting", SHARED.roles, ("generator", "aggregator"))


def way(seed: int, kinds: int = 20) -> Way:
    """A way of writing: how often each of some kinds of words is used."""
    rng = np.random.default_rng(seed)
    shares = np.zeros(BUCKETS)
    shares[rng.choice(BUCKETS, kinds, replace=False)] = rng.dirichlet(np.ones(kinds))
    return shares


STAMP, WORK, TERSE, CODE = way(1, 5), way(2), way(3, 6), way(4)


def profile(
    rng: np.random.Generator, mixture: Sequence[tuple[float, Way]], texts: int, words: int
) -> Stat:
    """The ``words`` of one step: each text is written in one of the ways of the mixture."""
    weights = np.array([max(one, 0.0) for one, _ in mixture])
    chosen = rng.choice(len(mixture), texts, p=weights / weights.sum())
    counts = [rng.multinomial(words, mixture[i][1]) for i in chosen]
    return Stat(texts, float(words), shares=tuple((np.mean(counts, axis=0) / words).tolist()))


def run(
    roles: Mapping[str, Mixture],
    *,
    seed: int = 0,
    steps: int = 40,
    texts: int = 32,
    words: int = 12,
    totals: Callable[[int], Mapping[str, float]] = lambda t: {},
    extra: Callable[[int, str], Mapping[str, Stat]] = lambda t, role: {},
) -> list[StepRecord]:
    """Records of roles whose texts at step t (from 0) are mixtures of ways of writing."""
    rng = np.random.default_rng(seed)
    return [
        StepRecord(
            step=t + 1,
            groups={
                role: {"words": profile(rng, mixture(t), texts, words), **extra(t, role)}
                for role, mixture in roles.items()
            },
            totals=dict(totals(t)),
        )
        for t in range(steps)
    ]
