"""Evidence that a stream has left its start for good, accumulated over records.

With ``z_t`` the standardised excess of record ``t`` over everything that a healthy stream may do,
a mixture over the size ``d`` of a lasting shift and over the record at which it began::

    R_d <- (R_d + w_t) exp(d clip(z_t, -3, 3) - d^2 / 2),   d in {0.5, 1, 2};   E = mean R_d
    w_t = h / ((t + h - 1) (t + h)),   which add up to 1 over all t >= 1

This is the Shiryaev-Roberts recursion with a prior on the change point (Shiryaev, 1963) in the form
of an e-process (Shin, Ramdas & Rinaldo, "E-detectors", 2022). While the mean of ``z`` is at most 0
and its scale at most 1, ``E`` is a supermartingale that starts at no more than 1 in total, so by
Ville's inequality the chance that it ever reaches ``1 / a`` is at most ``a``, however long the run.
A small lasting shift counts as much as a short large one; one record can never complete it.
"""

from __future__ import annotations

import math
from math import exp, inf, log

SHIFTS = (0.5, 1.0, 2.0)
"""Sizes of a lasting shift, in standard deviations, that the mixture is about."""

CAP = 3.0
"""Standard deviations that one record can count for."""

HORIZON = 100.0
"""Records in which half of the prior on the change point lies."""

EXPECTED = 0.2
"""Prior probability of a change at the record at which a setting was changed."""

_WEIGHTS = tuple((d, d * d / 2) for d in SHIFTS)
_LARGEST = 1e15

_QUIET = 1.0
"""CUSUM, in standard deviations, below which there is no suspicion."""


class ChangeProcess:
    """The evidence of one stream."""

    __slots__ = ("_cusum", "_ratios", "_records", "log", "onset")

    def __init__(self) -> None:
        self._ratios = [0.0, 0.0, 0.0]
        self._records = 0
        self._cusum = 0.0
        self.log = -math.inf
        """Natural logarithm of the evidence ``E``."""
        self.onset: int | None = None
        """First step of the present excursion; None without one."""

    def observe(self, step: int, z: float) -> None:
        """Take the standardised excess of one record.

        Args:
            step: Its step.
            z: Standard deviations above what a healthy stream may do.
        """
        t = self._records = self._records + 1
        prior = HORIZON / ((t + HORIZON - 1) * (t + HORIZON))
        # Comparisons instead of min and max, here and in the start: this is what judging costs.
        z = -CAP if z < -CAP else CAP if z > CAP else z
        total, ratios = 0.0, self._ratios
        for i, (d, half) in enumerate(_WEIGHTS):
            ratio = (ratios[i] + prior) * exp(d * z - half)
            if ratio > _LARGEST:
                ratio = _LARGEST
            ratios[i] = ratio
            total += ratio
        self.log = log(total / len(_WEIGHTS)) if total > 0 else -inf
        # Page's CUSUM of the same values dates the change: since when it has been above 0.
        cusum = self._cusum + z - SHIFTS[0] / 2
        if cusum > 0.0:
            self._cusum = cusum
            if self.onset is None:
                self.onset = step
        else:
            self._cusum, self.onset = 0.0, None

    def expect(self) -> None:
        """A change is to be expected now: a setting was changed that moves this stream."""
        self._ratios = [ratio + EXPECTED for ratio in self._ratios]

    @property
    def quiet(self) -> bool:
        """True while there is no suspicion: such records teach what is healthy."""
        return self._cusum < _QUIET

    def reset(self) -> None:
        """Forget an excursion that is over; the prior goes on where it was."""
        self._ratios = [0.0, 0.0, 0.0]
        self._cusum, self.log, self.onset = 0.0, -math.inf, None


def needed(false_alerts_per_run: float, streams: float) -> float:
    """Log-evidence at which a stream alarms, so that all streams together keep the budget.

    Args:
        false_alerts_per_run: Expected false alerts in a healthy run, all streams together.
        streams: Number of streams, or the sum of their weights.
    """
    return math.log(max(streams, 1) / max(false_alerts_per_run, 1e-12))
