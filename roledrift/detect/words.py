"""A role's way of writing: which kinds of words its texts are made of, and whose they become."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roledrift.config import BaselineConfig
from roledrift.detect.baseline import LENGTH, SHARE, Baseline, Warmup, baseline_of
from roledrift.records import StepRecord

_Shares = NDArray[np.float64]
_LARGEST_NOISE = 0.5


@dataclass(frozen=True, slots=True)
class Way:
    """How far a role's words have gone from its own start, in units of the way to another role's.

    With ``P`` the profile now, ``A`` the role's own at the start, ``B`` the other's (K buckets) and
    weights ``w = 1 / (A + B + 1/K)``::

        share = sum w (P - A) (B - A) / sum w (B - A)^2
        gone  = sqrt(sum w (P - A)^2 / sum w (B - A)^2)

    The weights are those of the triangular discrimination, a relative of the Jensen-Shannon
    divergence (``D = sum (B - A)^2 / (A + B)`` has ``D / 4 <= JS <= D ln 2 / 2``; Topsoe, 2000);
    1/K keeps words that neither has used at the start from outweighing all others.

    Profiles are means over texts, so if a share q of the texts is written as the other role's and
    the rest as before, ``share`` is q: it is linear in P and needs no correction for few words.

    Attributes:
        share: 0 at its own start, 1 at the other's.
        gone: Distance from its own start, in any direction, in the same unit; never less than
            ``|share|``.
        z: Robust standard deviations by which ``share`` exceeds that of the role's own warm-up.
        left: The same for ``gone``.
    """

    share: float
    gone: float
    z: float
    left: float

    @property
    def direct(self) -> float:
        """Cosine of the way gone and the way to the other role: 1 straight toward it."""
        return self.share / self.gone if self.gone > 0 else 0.0


class Vocabulary:
    """One role's profiles of words: those of its warm-up, and that of the last record."""

    def __init__(self, baseline: BaselineConfig) -> None:
        self._warmup = Warmup(baseline, LENGTH)
        self._profiles: list[_Shares] = []
        self._start: _Shares | None = None
        self._lines: list[tuple[Vocabulary, _Line | None]] = []
        self.now: _Shares | None = None
        """Shares in the last record; None if it had none, or completed the warm-up."""

    def see(self, record: StepRecord, role: str) -> None:
        """Take one record."""
        self.now = None
        stat = record.stat(role, "words")
        shares = None if stat is None or not stat.shares else np.asarray(stat.shares)
        if self._start is not None:
            fits = shares is not None and shares.shape == self._start.shape
            self.now = shares if fits else None
            return
        if shares is not None:
            self._profiles.append(shares)
        self._warmup.see(None if shares is None or stat is None else max(stat.mean, 1.0))
        if self._warmup.baseline is not None:
            # Which records the warm-up took is its own business; they are the last ones.
            self._profiles = self._profiles[-self._warmup.baseline.n :]
            self._start = np.mean(self._profiles, axis=0)

    @property
    def seen(self) -> bool:
        """True once there was any profile."""
        return self._warmup.seen

    @property
    def lacks(self) -> int:
        """Records with words that the warm-up still wants."""
        return self._warmup.lacks

    def way(self, other: Vocabulary) -> Way | None:
        """The way that this role's last record has gone from its start, to another role's start.

        Returns:
            None without both starts and a profile now, or if the two starts cannot be told apart
            from the noise of the warm-up.
        """
        line = self._line(other)
        if line is None or self.now is None:
            return None
        share, gone = line.on(self.now)
        return Way(share, gone, line.shares.z(share), line.distances.z(gone))

    def tells_apart(self, other: Vocabulary) -> bool:
        """Whether the two roles' words differ at the start by more than noise."""
        return self._line(other) is not None

    def _line(self, other: Vocabulary) -> _Line | None:
        mine, its = self._start, other._start
        if mine is None or its is None or mine.shape != its.shape:
            return None
        # Neither start changes any more, so the line between them is found once.
        for known, line in self._lines:
            if known is other:
                return line
        self._lines.append((other, self._drawn(mine, its)))
        return self._lines[-1][1]

    def _drawn(self, mine: _Shares, its: _Shares) -> _Line | None:
        weights = 1.0 / (mine + its + 1.0 / mine.size)
        length = float((weights * (its - mine) ** 2).sum())
        if length <= 0:
            return None
        warm = [_project(one, mine, its, weights) for one in self._profiles]
        distances = baseline_of([gone for _, gone in warm], SHARE)
        if distances.center > _LARGEST_NOISE:
            return None
        return _Line(
            mine, its, weights, baseline_of([share for share, _ in warm], SHARE), distances
        )


@dataclass(frozen=True, slots=True)
class _Line:
    mine: _Shares
    its: _Shares
    weights: _Shares
    shares: Baseline
    distances: Baseline

    def on(self, profile: _Shares) -> tuple[float, float]:
        return _project(profile, self.mine, self.its, self.weights)


def _project(
    profile: _Shares, mine: _Shares, its: _Shares, weights: _Shares
) -> tuple[float, float]:
    """Share of the way and distance gone, see :class:`Way`."""
    off, way = profile - mine, its - mine
    length = float((weights * way**2).sum())
    share = float((weights * off * way).sum()) / length
    return share, float(np.sqrt((weights * off**2).sum() / length))
