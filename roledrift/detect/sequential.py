"""Evidence that adds up over steps: a one-sided CUSUM, and when it amounts to an alarm.

Page (1954). With ``z_t`` the robust standard deviations by which step ``t`` exceeds the baseline::

    S_t = max(0, S_{t-1} + min(z_t - reference, decision / 3));   complete once S_t >= decision

What the two numbers mean. :func:`decision_for` solves ``decision`` from a stated rate of false
alarms, by simulation of what is really computed: a centre from eight records, a spread learned from
healthy ones, winsorised evidence, outliers in 1 % of the records, lag-one correlation 0.5. A higher
correlation, which the baseline learns too, stretches the decision. For independent normal ``z`` and
an exactly known baseline the mean number of steps until a false alarm would be
:func:`average_run_length`, which is far longer. The detectors never alarm on the CUSUM alone: an
effect floor and persistence must hold at the same time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache

from roledrift.detect.baseline import ASSUMED_CORRELATION

_SOLVED = ((0.125, 2.0), (0.079, 4.0), (0.0575, 6.0), (0.043, 8.0), (0.026, 12.0), (0.015, 20.0))
"""False alarms per 100 records, at reference 1, and the decision that gives them. From 4,000
simulated runs of 100 records; ``tests/detect/test_sequential.py`` simulates them again."""

_PER_CORRELATION = 5.0
"""By what share the decision grows per unit of correlation above the assumed one. The correlation
that is learned from the few healthy records of a run is too small where it is high: at 0.8 the
evidence alone is complete in 14 % of simulated runs instead of the 4 % stated."""

QUIET = 4.0
"""Evidence below which a record is healthy enough to learn the spread from."""


def decision_for(false_alarms: float) -> float:
    """The decision value of a CUSUM with a stated rate of false alarms.

    Args:
        false_alarms: Expected number per 100 records of one healthy role; 0.04 is one in 2,500
            records. The simulated rates are interpolated, and extrapolated beyond 0.015, on the
            log scale.

    Returns:
        The decision; 0 (no evidence needed) for a rate of 1 or more.
    """
    if false_alarms >= 1:
        return 0.0
    wanted = -math.log(max(false_alarms, 1e-9))
    rates = [-math.log(rate) for rate, _ in _SOLVED]
    above = min(max(bisect_left(rates, wanted), 1), len(rates) - 1)
    (x0, y0), (x1, y1) = ((rates[i], _SOLVED[i][1]) for i in (above - 1, above))
    return max(y0 + (wanted - x0) * (y1 - y0) / (x1 - x0), 1.0)


@lru_cache(maxsize=256)
def chance_of(false_alarms: float, decision: float) -> str:
    """What complete evidence is worth, in words; empty if none was asked for.

    Args:
        false_alarms: As for :func:`decision_for`.
        decision: Evidence that was needed.
    """
    if not 0 < false_alarms < 1:
        return ""
    return (
        f"against {decision:.3g} needed, "
        f"expected by chance once in {100 / false_alarms:,.0f} healthy records of a role"
    )


class Cusum:
    """One-sided CUSUM on standardised values.

    One value can add at most a third of ``decision`` (winsorising): neither a spike nor two in a
    row, however high, complete the evidence. The sum is capped at twice ``decision``, so that it
    comes down again.

    Args:
        reference: Excess per step, in standard deviations, that counts as nothing.
        decision: Sum at which the evidence is complete.
    """

    def __init__(self, reference: float, decision: float) -> None:
        self.value = 0.0
        """The sum."""
        self.onset: int | None = None
        """First step after the sum was last zero; None while it is zero."""
        self._reference = reference
        self._plain = self._decision = decision

    @property
    def decision(self) -> float:
        """The decision, stretched by the correlation of the last record."""
        return self._decision

    @property
    def quiet(self) -> bool:
        """True while there is no suspicion worth the name."""
        return self.value < QUIET

    @property
    def complete(self) -> bool:
        """True while the sum is at or above ``decision``."""
        # decision 0 switches the evidence off; an excursion is still needed to have an onset.
        return self.onset is not None and self.value >= self._decision

    def see(
        self, step: int, z: float, *, least: float = 0.0, correlation: float = ASSUMED_CORRELATION
    ) -> None:
        """Add one step's standardised value.

        Args:
            step: Its step.
            z: The value.
            least: The smallest effect that matters, standardised. Half of it is the reference value
                where that is more (the classical choice for finding a shift of this size), so that
                a small lasting offset from the baseline adds up to nothing and dates nothing.
            correlation: Lag-one correlation of healthy records: the more records repeat each other,
                the less each of them says.
        """
        # Called for every sign of every role in every record, so without max() and min().
        more = correlation - ASSUMED_CORRELATION
        decision = self._plain * (1 + _PER_CORRELATION * more) if more > 0 else self._plain
        self._decision = decision
        cap = decision if decision > 1.0 else 1.0
        excess = z - (least / 2 if least / 2 > self._reference else self._reference)
        value = self.value + (cap / 3 if excess > cap / 3 else excess)
        if value <= 0:
            self.reset()
            return
        if self.onset is None:
            self.onset = step
        self.value = 2 * cap if value > 2 * cap else value

    def reset(self) -> None:
        """Forget the excursion."""
        self.value, self.onset = 0.0, None


class Alarm:
    """Effect that persists and evidence that is complete: drift needs both.

    Args:
        cusum: The evidence.
        patience: Records in a row with the effect.
        forget_after: Records in a row without any sign of it, after a drift, that end the
            excursion. Without this the sum of an old excursion would date a new one back to it.
    """

    def __init__(self, cusum: Cusum, *, patience: int, forget_after: int) -> None:
        self.cusum = cusum
        self.drifting = False
        """True while there is drift."""
        self.persisted = 0
        """Records in a row with the effect."""
        self._patience = patience
        self._forget_after = forget_after
        self._drifted = False
        self._clean = 0

    def see(
        self,
        step: int,
        z: float,
        *,
        least: float,
        effect: bool,
        clean: bool,
        correlation: float = ASSUMED_CORRELATION,
    ) -> bool:
        """Take one record and say whether there is drift.

        Args:
            step: Its step.
            z: Its standardised value.
            least: The smallest effect that matters, standardised.
            effect: True if the effect is large enough to matter.
            clean: True if the value is not even worth watching.
            correlation: As for :meth:`Cusum.see`.
        """
        self.cusum.see(step, z, least=least, correlation=correlation)
        self.persisted = self.persisted + 1 if effect else 0
        self._clean = self._clean + 1 if clean else 0
        if self._drifted and self._clean >= max(self._forget_after, 1):
            self.cusum.reset()
            self._drifted = False
        self.drifting = self.persisted >= max(self._patience, 1) and self.cusum.complete
        self._drifted |= self.drifting
        return self.drifting


def average_run_length(reference: float, decision: float, *, shift: float = 0.0) -> float:
    """Mean steps until a CUSUM of independent normal values reaches ``decision``.

    Siegmund's (1985) approximation ``(exp(-2 d b) + 2 d b - 1) / (2 d^2)`` with
    ``d = shift - reference`` and ``b = decision + 1.166``; winsorising is left out.

    Args:
        reference: Reference value, in standard deviations.
        decision: Decision value, in standard deviations.
        shift: True mean of the values: 0 gives the time between false alarms, more the delay.
    """
    d, b = shift - reference, decision + 1.166
    if abs(d) < 1e-9:
        return b * b
    return (math.exp(-2 * d * b) + 2 * d * b - 1) / (2 * d * d)
