"""What a run looked like right after its start: the yardstick of every detector.

A statistic is compared with its own warm-up, never with an absolute number from another task or
model. The warm-up is short and healthy runs hold single outliers of many orders of magnitude, so
location and spread are the median and the median absolute deviation. The location stays that of the
start; spread and correlation go on being learned from records without suspicion, because eight
records cannot tell a series that wanders from one that has left.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from statistics import median

from roledrift.config import BaselineConfig


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale on which a statistic is compared.

    Attributes:
        log: Compare ratios (lengths, policy movement) instead of differences (shares).
        sigma_floor: Smallest spread believed, in units of the scale. A short warm-up that happens
            to repeat itself must not make every later step look infinitely far away.
        smallest: Smaller values count as this one; only for ``log``.
        largest: Larger values, also infinite ones, count as this one.
    """

    log: bool
    sigma_floor: float
    smallest: float = 1e-9
    largest: float = 1e9

    def on(self, value: float) -> float:
        """``value`` on this scale."""
        least = self.smallest if self.log else -self.largest
        if value < least:
            value = least
        elif value > self.largest:
            value = self.largest
        return math.log(value) if self.log else value


LENGTH = Scale(log=True, sigma_floor=0.1, smallest=0.5)
"""Mean lengths in tokens: ratios; means over some dozen spans wobble by some percent."""

SHARE = Scale(log=False, sigma_floor=0.03)
"""Shares in [0, 1]: differences; three points is what some dozen spans can resolve."""

MOVEMENT = Scale(log=True, sigma_floor=0.3, smallest=1e-7)
"""Policy movement per step: ratios over many orders of magnitude."""

ASSUMED_CORRELATION = 0.5
"""Lag-one correlation of healthy records that is assumed at least; the start cannot tell it."""

BELIEVABLE = 3.0
"""Spreads about the baseline that an effect must exceed, however small the configured floor: a
series that wanders comes as far as that by itself."""

_TAUGHT = 4.0
"""Spreads beyond which a record teaches nothing: a slow drift must not pass for correlation."""

_SELF_EXCUSE = 1.2
"""How many times the spread of the start may be learned: a drift so slow that every record looks
healthy would else pass for wandering, and the more so the farther it goes."""

_LONG_RUN = math.sqrt((1 + ASSUMED_CORRELATION) / (1 - ASSUMED_CORRELATION))
_MAD = 1.4826
_KNOWN = 8
"""Records that the assumed correlation counts for, beside those measured."""
_LARGEST_CORRELATION = 0.7
_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class Baseline:
    """Location and spread of a warm-up.

    Attributes:
        center: Median, on the scale.
        sigma: Robust standard deviation of one further record about ``center``, on the scale.
        n: Values in it.
        scale: The scale.
        spread: Robust standard deviation of healthy records about ``center``, without the
            allowances that ``sigma`` makes.
        correlation: Lag-one correlation of healthy records, at least that which is assumed.
    """

    center: float
    sigma: float
    n: int
    scale: Scale
    spread: float = 0.0
    correlation: float = ASSUMED_CORRELATION

    @property
    def typical(self) -> float:
        """The median in the statistic's own units."""
        return math.exp(self.center) if self.scale.log else self.center

    def z(self, value: float) -> float:
        """Robust standard deviations by which ``value`` exceeds the baseline."""
        return (self.scale.on(value) - self.center) / self.sigma

    def distance(self, ratio: float) -> float:
        """Robust standard deviations that a growth by ``ratio`` amounts to; for log scales."""
        return math.log(max(ratio, 1.0)) / self.sigma

    @property
    def believable(self) -> float:
        """The value from which on an effect cannot be wandering, in the statistic's own units."""
        x = self.center + BELIEVABLE * self.spread
        return math.exp(x) if self.scale.log else x

    def ratio(self, value: float) -> float:
        """``value`` over the baseline; only for statistics on a log scale."""
        return math.exp(self.scale.on(value) - self.center)


def baseline_of(values: list[float], scale: Scale) -> Baseline:
    """The baseline of a warm-up.

    ``sigma = 1.4826 MAD * n / (n - 0.8) * sqrt(1 + pi / (2 n)) * sqrt((1 + r) / (1 - r))``:
    consistent for a normal sample; corrected for small ``n`` (Croux & Rousseeuw, 1992); widened by
    the standard error of the median, because later records are compared with an estimate; and the
    long-run deviation of an autocorrelated series (of lag-one correlation ``r``), because evidence
    is summed over neighbouring records. A short warm-up cannot tell ``r``; 0.5 is assumed.

    Args:
        values: At least one finite or infinite value, no NaN.
        scale: Where they are compared.
    """
    x = [scale.on(value) for value in values]
    n, center = len(x), median(x)
    mad = median([abs(one - center) for one in x])
    spread = _MAD * mad * n / (n - 0.8) * math.sqrt(1 + math.pi / (2 * n))
    return Baseline(center, max(spread * _LONG_RUN, scale.sigma_floor), n, scale, spread)


def middle(ordered: list[float]) -> float:
    """The median of sorted values, NaN of none; ``statistics.median`` would sort them again."""
    if not ordered:
        return math.nan
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


class _Healthy:
    """Deviations of healthy records from the baseline: how far they scatter and how long they last.

    Args:
        values: The warm-up, on the scale.
        center: The baseline's location.
    """

    def __init__(self, values: list[float], baseline: Baseline) -> None:
        self._start = baseline
        self._recent: deque[float] = deque()
        self._sorted: list[float] = []
        self._last: float | None = None
        self._products, self._squares, self._pairs = 0.0, 0.0, 0
        for value in values:
            self._take(value - baseline.center, baseline.spread)

    def _take(self, deviation: float, spread: float) -> None:
        if len(self._recent) == _REMEMBERED:
            gone = abs(self._recent.popleft())
            del self._sorted[bisect_left(self._sorted, gone)]
        self._recent.append(deviation)
        insort(self._sorted, abs(deviation))
        limit = BELIEVABLE * max(spread, 1e-9)
        now = min(max(deviation, -limit), limit)
        if self._last is not None:
            self._products += now * self._last
            self._squares += (now * now + self._last * self._last) / 2
            self._pairs += 1
        self._last = now

    def skip(self) -> None:
        """A record that is not learned from: its neighbours are no neighbours of each other."""
        self._last = None

    def learn(self, baseline: Baseline, x: float) -> Baseline:
        """The baseline with one more healthy record ``x`` (on the scale)."""
        if abs(x - baseline.center) > _TAUGHT * max(baseline.spread, 1e-9):
            self.skip()
            return baseline
        self._take(x - baseline.center, baseline.spread)
        # About the start's centre, not their own: what the centre is wrong by is spread too.
        scatter = _MAD * middle(self._sorted)
        floor = baseline.scale.sigma_floor / _LONG_RUN
        most = _SELF_EXCUSE * max(self._start.spread, floor)
        spread = min(max(self._start.spread, scatter), most)
        r = self._products / self._squares if self._squares > 0 else 0.0
        # Shrunk to the assumption; + 0.5 / n because short series make r look smaller than it is.
        r = (self._pairs * r + _KNOWN * ASSUMED_CORRELATION) / (self._pairs + _KNOWN)
        r += 0.5 / max(self._pairs, 1)
        correlation = min(max(r, ASSUMED_CORRELATION), _LARGEST_CORRELATION)
        sigma = max(spread * _LONG_RUN, baseline.scale.sigma_floor)
        return Baseline(baseline.center, sigma, baseline.n, baseline.scale, spread, correlation)


class Warmup:
    """Collects the baseline of one statistic of one role.

    A record without the statistic counts toward ``skip`` (it is a step of the run) but not toward
    ``window``: what is missing is passed over and never read as zero.

    Args:
        config: How many records are skipped and how many are the baseline.
        scale: Where values are compared.
    """

    def __init__(self, config: BaselineConfig, scale: Scale) -> None:
        self.baseline: Baseline | None = None
        """The baseline once it is full; only :meth:`learn` changes its spread afterwards."""
        self.seen = False
        """True once there was any value."""
        self._scale = scale
        self._skip = config.skip
        self._window = max(config.window, 1)
        self._values: list[float] = []
        self._healthy: _Healthy | None = None

    @property
    def lacks(self) -> int:
        """Records with a value that are still wanted."""
        return 0 if self.baseline else max(self._skip, 0) + self._window - len(self._values)

    def see(self, value: float | None) -> None:
        """Take one record's value; None or NaN if it was not measured."""
        if self.baseline is not None:
            return
        known = value is not None and not math.isnan(value)
        self.seen |= known
        if self._skip > 0:
            self._skip -= 1
        elif known and value is not None:
            self._values.append(value)
            if len(self._values) == self._window:
                self.baseline = baseline_of(self._values, self._scale)
                on_scale = [self._scale.on(one) for one in self._values]
                self._healthy = _Healthy(on_scale, self.baseline)
                self._values.clear()

    def learn(self, value: float, *, healthy: bool) -> None:
        """After the baseline is full: learn spread and correlation from one more record.

        Args:
            value: The record's value.
            healthy: False while there is any suspicion; such a record teaches nothing, or a drift
                would excuse itself.
        """
        if self.baseline is None or self._healthy is None:
            return
        if healthy:
            self.baseline = self._healthy.learn(self.baseline, self._scale.on(value))
        else:
            self._healthy.skip()


def more_steps(lacks: int) -> str:
    """The need of a detector whose baseline is not full yet, for ``Verdict.needs``."""
    return f"{lacks} more step{'' if lacks == 1 else 's'} of baseline"


def measured(value: float | None) -> float | None:
    """``value``, or None if it is missing or not a number."""
    return value if value == value else None
