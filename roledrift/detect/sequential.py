"""Evidence that adds up over steps: a one-sided CUSUM, and when it amounts to an alarm.

Page (1954). With ``z_t`` the robust standard deviations by which step ``t`` exceeds the baseline::

    S_t = max(0, S_{t-1} + min(z_t - reference, decision / 3));   complete once S_t >= decision

What the two numbers mean. For independent normal ``z`` and an exactly known baseline the mean
number of steps until a false alarm is :func:`average_run_length`: about 5 x 10^7 for reference 1
and decision 8. Real records are autocorrelated, heavy-tailed, and compared with a baseline from a
handful of steps, which all make it shorter. The detectors therefore never alarm on the CUSUM alone:
an effect floor and persistence must hold at the same time, and the false-alarm rate that counts is
the one counted on simulated runs (in the tests of this package).
"""

from __future__ import annotations

import math


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
        self._decision = decision

    @property
    def complete(self) -> bool:
        """True while the sum is at or above ``decision``."""
        # decision 0 switches the evidence off; an excursion is still needed to have an onset.
        return self.onset is not None and self.value >= self._decision

    def see(self, step: int, z: float, *, least: float = 0.0) -> None:
        """Add one step's standardised value.

        Args:
            step: Its step.
            z: The value.
            least: The smallest effect that matters, standardised. Half of it is the reference value
                where that is more (the classical choice for finding a shift of this size), so that
                a small lasting offset from the baseline adds up to nothing and dates nothing.
        """
        reference = max(self._reference, least / 2)
        excess = min(z - reference, max(self._decision, 1.0) / 3)
        value = self.value + excess
        if value <= 0:
            self.reset()
            return
        if self.onset is None:
            self.onset = step
        self.value = min(value, 2 * max(self._decision, 1.0))

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

    def see(self, step: int, z: float, *, least: float, effect: bool, clean: bool) -> bool:
        """Take one record and say whether there is drift.

        Args:
            step: Its step.
            z: Its standardised value.
            least: The smallest effect that matters, standardised.
            effect: True if the effect is large enough to matter.
            clean: True if the value is not even worth watching.
        """
        self.cusum.see(step, z, least=least)
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
