"""What a run looked like right after its start: the yardstick of every detector.

A statistic is compared with its own warm-up, never with an absolute number from another task or
model. The warm-up is short and healthy runs hold single outliers of many orders of magnitude, so
location and spread are the median and the median absolute deviation.
"""

from __future__ import annotations

import math
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
        if not self.log:
            return min(max(value, -self.largest), self.largest)
        return math.log(min(max(value, self.smallest), self.largest))


LENGTH = Scale(log=True, sigma_floor=0.1, smallest=0.5)
"""Mean lengths in tokens: ratios; means over some dozen spans wobble by some percent."""

SHARE = Scale(log=False, sigma_floor=0.03)
"""Shares in [0, 1]: differences; three points is what some dozen spans can resolve."""

MOVEMENT = Scale(log=True, sigma_floor=0.3, smallest=1e-7)
"""Policy movement per step: ratios over many orders of magnitude."""

_CORRELATION = 0.5
_LONG_RUN = math.sqrt((1 + _CORRELATION) / (1 - _CORRELATION))


@dataclass(frozen=True, slots=True)
class Baseline:
    """Location and spread of a warm-up.

    Attributes:
        center: Median, on the scale.
        sigma: Robust standard deviation of one further record about ``center``, on the scale.
        n: Values in it.
        scale: The scale.
    """

    center: float
    sigma: float
    n: int
    scale: Scale

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
    sigma = 1.4826 * mad * n / (n - 0.8) * math.sqrt(1 + math.pi / (2 * n)) * _LONG_RUN
    return Baseline(center, max(sigma, scale.sigma_floor), n, scale)


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
        """The baseline once it is full; never changes afterwards."""
        self.seen = False
        """True once there was any value."""
        self._scale = scale
        self._skip = config.skip
        self._window = max(config.window, 1)
        self._values: list[float] = []

    @property
    def lacks(self) -> int:
        """Records with a value that are still wanted."""
        return 0 if self.baseline else max(self._skip, 0) + self._window - len(self._values)

    def see(self, value: float | None) -> None:
        """Take one record's value; None or NaN if it was not measured."""
        known = value is not None and not math.isnan(value)
        self.seen |= known
        if self.baseline is not None:
            return
        if self._skip > 0:
            self._skip -= 1
        elif known and value is not None:
            self._values.append(value)
            if len(self._values) == self._window:
                self.baseline = baseline_of(self._values, self._scale)
                self._values.clear()


def more_steps(lacks: int) -> str:
    """The need of a detector whose baseline is not full yet, for ``Verdict.needs``."""
    return f"{lacks} more step{'' if lacks == 1 else 's'} of baseline"


def measured(value: float | None) -> float | None:
    """``value``, or None if it is missing or not a number."""
    return None if value is None or math.isnan(value) else value
