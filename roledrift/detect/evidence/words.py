"""How roles write: which kinds of words their texts hold, and whose way of writing they take.

A profile holds the mean share of each of K buckets of words (statistic ``words``). For a role whose
start is ``A`` and whose profile is ``P``, and a goal ``G``, with the weights of the triangular
discrimination, a relative of the Jensen-Shannon divergence (Topsoe, 2000)::

    w = 1 / (A + G + 1/K)
    share = sum w (P - A) (G - A) / sum w (G - A)^2        the share of the way to G
    distance = sum (P - A)^2 / (P + A + 1/K) / 2           0: as at the start, 1: no word in common

``1/K`` keeps words that nobody used at the start from outweighing all others. Profiles are means
over texts, so if a share q of the texts is written as in ``G`` and the rest as before, ``share`` is
q: it is linear in ``P`` and needs no correction for few words.

A start that holds the record it is compared with is too close to it by a factor sqrt(1 - 1/n), and
too far from later ones by sqrt(1 + 1/n). So each record is compared with the mean of those *before*
it, and the noise of few words is the same within the start as after it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from roledrift.detect.evidence.start import LEAST
from roledrift.records import Stat, StepRecord

Shares = NDArray[np.float64]

_TEXTS = 16.0
"""Texts that a profile must be the mean of; records are pooled until there are so many."""

_RECENT = 3
_LEAST = 1e-9
"""Squared distance of two starts below which there is no way between them."""

STRAIGHT = 0.7
"""Cosine from which on a role has gone toward a goal, and not merely away from its start."""

_APART = 4.0
"""How many times its own noise the squared distance of two starts must be."""


def share_of_way(now: Shares, start: Shares, goal: Shares) -> float:
    """The share of the way from ``start`` to ``goal`` that ``now`` has gone; NaN without a way."""
    way = goal - start
    weighted = way / (start + goal + 1.0 / start.size)
    length = float(weighted @ way)
    return float(weighted @ (now - start)) / length if length > 0 else float("nan")


def squared(a: Shares, b: Shares) -> float:
    """``sum (a - b)^2 / (a + b + 1/K)``, the triangular discrimination of two profiles."""
    off = a - b
    return float((off / (a + b + 1.0 / a.size)) @ off)


def _gone(now: Shares, start: Shares, goal: Shares) -> tuple[float, float]:
    """Share of the way to ``goal``, and the cosine of the way gone and the way there."""
    way, off = goal - start, now - start
    weights = 1.0 / (start + goal + 1.0 / start.size)
    length, gone = float((weights * way) @ way), float((weights * off) @ off)
    along = float((weights * way) @ off)
    if length <= 0 or gone <= 0:
        return 0.0, 0.0
    return along / length, along / math.sqrt(length * gone)


class _RoleProfiles:
    """One role's profiles: its start, its last records, and the one that just came in.

    Attributes:
        start: Mean of the first records, or of the policy before training; ``n``: of how many.
        noise: The first records, whose differences are noise.
        now: The profile that came in with the present record, if any; ``before``: the last but it.
    """

    def __init__(self, start: Shares | None = None, n: float = 0.0) -> None:
        self.start, self.n, self.complete = start, n, start is not None
        self.noise: list[Shares] = []
        self.now: Shares | None = None
        self.before: Shares | None = None
        self.recent: deque[Shares] = deque(maxlen=_RECENT)
        self._texts, self._total = 0.0, np.zeros(0)

    def take(self, stat: Stat | None) -> None:
        """Take the present record."""
        self.now = None
        shares = _valid(stat)
        if stat is None or shares is None:
            return
        if self.start is not None and shares.size != self.start.size:
            return
        if self._total.size != shares.size:
            self._texts, self._total = 0.0, np.zeros(shares.size)
        self._texts += stat.n
        self._total += stat.n * shares
        if self._texts < _TEXTS:
            return
        self.before = self.recent[-1] if self.recent else None
        self.now = self._total / self._texts
        self.recent.append(self.now)
        self._texts, self._total = 0.0, np.zeros(shares.size)

    def grow(self) -> None:
        """Let the present record belong to the start, once it has been compared with it."""
        if self.now is None or len(self.noise) >= LEAST:
            return
        self.noise.append(self.now)
        if not self.complete:
            self.n = float(len(self.noise))
            self.start = np.mean(self.noise, axis=0)
            self.complete = len(self.noise) >= LEAST

    @property
    def lately(self) -> Shares:
        """Mean of the last records."""
        return np.asarray(sum(self.recent) / len(self.recent))

    @property
    def error(self) -> float:
        """Squared distance by which noise alone removes the start from the truth."""
        pairs = list(pairwise(self.noise))
        if not pairs or not self.n:
            return 0.0
        return fmean(squared(a, b) for a, b in pairs) / 2 / self.n


class Writing:
    """The ways of writing of roles that share a policy."""

    def __init__(self, roles: Sequence[str]) -> None:
        self._profiles = {role: _RoleProfiles() for role in roles}
        self._record: StepRecord | None = None
        self._shares: dict[tuple[str, str], float] = {}
        self._lines: dict[str, tuple[tuple[str, ...], Shares]] = {}
        self._apart: dict[tuple[str, str], bool] = {}
        self.from_base = False
        """Whether the policy before training is the start."""

    def observe(self, record: StepRecord) -> None:
        """Take one record; a second time it changes nothing."""
        if record is self._record:
            return
        if self._record is None:
            self._begin(record)
        self._record = record
        self._shares.clear()
        for role, profile in self._profiles.items():
            profile.take(record.stat(role, "words"))
        for role, profile in self._profiles.items():
            if profile.now is not None and profile.start is not None:
                self._project(role, profile.now, profile.start)
        for profile in self._profiles.values():
            profile.grow()

    def _project(self, role: str, now: Shares, start: Shares) -> None:
        """The shares of the ways to all other roles' starts that ``role`` has gone."""
        lines = self._lines.get(role)
        if lines is None:
            goals = {
                other: profile.start
                for other, profile in self._profiles.items()
                if other != role and profile.start is not None and profile.start.size == now.size
            }
            ways = []
            for goal in goals.values():
                weighted = (goal - start) / (start + goal + 1.0 / start.size)
                ways.append(weighted / max(float(weighted @ (goal - start)), _LEAST))
            lines = tuple(goals), np.array(ways).reshape(len(goals), start.size)
            if all(profile.complete for profile in self._profiles.values()):
                self._lines[role] = lines
        others, matrix = lines
        for other, share in zip(others, (matrix @ (now - start)).tolist(), strict=True):
            self._shares[role, other] = share

    def share(self, record: StepRecord, role: str, other: str) -> float | None:
        """The share of the way to the start of ``other`` that ``role`` has gone in this record."""
        self.observe(record)
        return self._shares.get((role, other))

    def away(self, record: StepRecord, role: str) -> float | None:
        """The distance of ``role`` from its own start, without that which is noise.

        The product of two records' displacements: their noises have nothing to do with each other,
        so its expectation is 0 while nothing changes, however few words there are.
        """
        self.observe(record)
        profile = self._profiles[role]
        start, now, before = profile.start, profile.now, profile.before
        if start is None or now is None or before is None or not profile.complete:
            return None
        weighted = (now - start) / (start + (now + before) / 2 + 1.0 / now.size)
        return float(weighted @ (before - start)) / 2

    def captured(self, role: str, other: str) -> tuple[float, float]:
        """The share of the way to ``other`` that ``role`` has gone lately, and how straight.

        In a capture that arises by itself the captor changes first, and the captured role follows
        to where it is. So the goal is the captor's start or its present way of writing, whichever
        is farther (a captor that comes to meet the role makes no capture of it), or the nearer one
        if the role has gone straight there and not to the other.

        Returns:
            The share, and the cosine of the way gone and the way to the goal: 1 straight toward it.
        """
        own, theirs = self._profiles[role], self._profiles[other]
        if own.start is None or theirs.start is None or not own.recent or not theirs.recent:
            return 0.0, 0.0
        start, now, goals = own.start, own.lately, [theirs.start, theirs.lately]
        if not start.size == now.size == goals[1].size:
            return 0.0, 0.0
        goals.sort(key=lambda goal: squared(start, goal), reverse=True)
        far, near = (_gone(now, start, goal) for goal in goals)
        return near if far[1] < STRAIGHT <= near[1] else far

    def toward(self, role: str, other: str) -> float:
        """The share of the way to the *start* of ``other`` that ``role`` has gone lately."""
        own, theirs = self._profiles[role], self._profiles[other]
        if own.start is None or theirs.start is None or not own.recent:
            return 0.0
        return share_of_way(own.lately, own.start, theirs.start)

    def apart(self, role: str, other: str) -> bool:
        """Whether the starts of two roles differ by more than their noise."""
        key = (min(role, other), max(role, other))
        if key in self._apart:
            return self._apart[key]
        own, theirs = self._profiles[role], self._profiles[other]
        if own.start is None or theirs.start is None or own.start.size != theirs.start.size:
            return False
        apart = squared(own.start, theirs.start) > _APART * (own.error + theirs.error)
        if min(len(own.noise), len(theirs.noise)) >= LEAST:
            self._apart[key] = apart
        return apart

    def measured(self, role: str) -> bool:
        """Whether the present record brought a profile of ``role``."""
        return self._profiles[role].now is not None

    def _begin(self, record: StepRecord) -> None:
        """Take the policy before training for the start, where it is known of every role."""
        profiles = {}
        for role in self._profiles:
            stat, now = record.base.get(role, {}).get("words"), record.stat(role, "words")
            shares = _valid(stat)
            if stat is not None and shares is not None and now is not None and now.n > 0:
                profiles[role] = _RoleProfiles(shares, stat.n / now.n)
        # Starts of different kinds differ by how they were made.
        if len(profiles) == len(self._profiles):
            self._profiles, self.from_base = profiles, True


def _valid(stat: Stat | None) -> Shares | None:
    if stat is None or not stat.shares or not stat.n > 0:
        return None
    shares = np.asarray(stat.shares, dtype=np.float64)
    return shares if np.isfinite(shares).all() and (shares >= 0).all() and shares.any() else None
