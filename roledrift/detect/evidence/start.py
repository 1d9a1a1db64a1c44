"""Where a stream starts: its centre, how far records scatter about it, and for how long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from roledrift.detect.evidence.noise import Noise

LEAST = 4
"""Records of a run's own start from which on it is judged."""

_PRIOR_WEIGHT = 6.0
"""Records that the library's spread counts for beside the run's own."""

_MAD = 1.4826
_REMEMBERED = 32
_ENOUGH = 8
_MOST_SPREAD = 1.5
"""How many times the spread of the start a run may learn: a drift must not excuse itself."""

_KNOWN_PAIRS = 12.0
_MOST_CORRELATION = 0.9


@dataclass(frozen=True, slots=True)
class Yardstick:
    """A start that is known before the run: of a reference run, earlier runs, or the base policy.

    Attributes:
        center: On the scale of the stream.
        error: Standard error of it as a prediction of a healthy start of this run.
        source: Whose it is, for people: "the policy before training".
    """

    center: float
    error: float
    source: str


Yardsticks = Mapping[str, Mapping[str, tuple[float, float]]]
"""Role to stream to the centre and the error of the starts of earlier runs."""


class Start:
    """The start of one stream; grows while nothing is suspicious, then stays.

    The spread of few records is unreliable, so it is pooled with that of a library of healthy runs:
    ``s^2 = (nu s0^2 + sum d^2) / (nu + n - 1)`` with ``d`` the deviations from the median, each
    winsorised at three robust standard deviations (the posterior mean of a variance under a scaled
    inverse chi-squared prior, roughly).

    Args:
        window: Records that make it complete.
        spread: The library's spread of one record, ``s0``.
        floor: The smallest spread that is believed.
        correlation: The library's lag-one correlation of healthy records.

    Attributes:
        n: Records that it holds; ``center`` is their median, on the scale.
        spread: Standard deviation of one healthy record.
        stretch: Long-run over single-record standard deviation: what correlation takes away.
        error: Standard error of the centre.
        lacks: Records that are wanted before anything is judged.
        full: True once it is complete and stays.
    """

    def __init__(self, window: int, *, spread: float, floor: float, correlation: float) -> None:
        self.n, self.center, self.error = 0, math.nan, math.inf
        self.spread = self._own = max(spread, floor)
        self.stretch = math.sqrt((1 + correlation) / (1 - correlation))
        self._window = max(window, 1)
        self.lacks, self.full = min(LEAST, self._window), False
        self._prior, self._floor, self._correlation = spread, floor, correlation
        self._values: list[float] = []
        self._noise = Noise(_REMEMBERED)
        self._quiet: float | None = None
        self._products = self._squares = 0.0
        self._pairs = 0

    def add(self, x: float) -> None:
        """One more record of the start."""
        self._values.append(x)
        n = self.n = len(self._values)
        self.lacks = max(min(LEAST, self._window) - n, 0)
        self.full = n >= self._window
        self.center = median(self._values)
        if n < 2:
            return
        off = [abs(value - self.center) for value in self._values]
        limit = 3 * max(_MAD * median(off), self._floor)
        squares = math.fsum(min(distance, limit) ** 2 for distance in off)
        variance = (_PRIOR_WEIGHT * self._prior**2 + squares) / (_PRIOR_WEIGHT + n - 1)
        self._own = self.spread = max(math.sqrt(variance), self._floor)
        self._set_error()

    def learn(self, x: float, *, quiet: bool) -> None:
        """Learn the noise from one more record, and its correlation if there is no suspicion."""
        noise, own, before = self._noise, self._own, self._quiet
        noise.observe(x)
        if noise.n >= _ENOUGH:
            sd, most = noise.sd, _MOST_SPREAD * own
            sd = sd if sd > own else own
            self.spread = sd if sd < most else most
        if quiet and before is not None:
            limit, center = 3 * self.spread, self.center
            # Comparisons instead of min and max: every value of every stream comes through here.
            a, b = x - center, before - center
            a = -limit if a < -limit else limit if a > limit else a
            b = -limit if b < -limit else limit if b > limit else b
            self._products += a * b
            self._squares += (a * a + b * b) / 2
            self._pairs += 1
            self._set_correlation()
        self._quiet = x if quiet else None
        self._set_error()

    def _set_correlation(self) -> None:
        if self._squares <= 0:
            return
        r, pairs, library = self._products / self._squares, self._pairs, self._correlation
        # Shrunk to the library's; + 0.5 / n because short series make it look smaller than it is.
        r = (pairs * r + _KNOWN_PAIRS * library) / (pairs + _KNOWN_PAIRS)
        r += 0.5 / pairs * r if r > 0 else 0.0
        r = r if r > library else library
        r = r if r < _MOST_CORRELATION else _MOST_CORRELATION
        self.stretch = math.sqrt((1 + r) / (1 - r))

    def _set_error(self) -> None:
        if self.n:
            # 1.25: what a median's standard error is of a mean's.
            self.error = 1.25 * self.spread * self.stretch / math.sqrt(self.n)
