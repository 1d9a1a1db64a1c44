"""What watching may cost: schedules are stretched while it costs more than its share of a step."""

from __future__ import annotations

from statistics import median

_WINDOW = 8
_LARGEST = 64


class Budget:
    """Decides by which factor the schedules of costly measurements are stretched.

    The share is a median over windows of eight steps, so neither one slow step nor one slow write
    changes it. Above the budget the factor doubles; below a quarter of it, it halves again.

    Args:
        share: Part of a step's wall time that watching may take; 0 switches the control off.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._shares: list[float] = []
        self.factor = 1

    def due(self, step: int, every: int) -> bool:
        """Is a measurement that is asked for every ``every`` steps due now? 0 is never."""
        return every > 0 and step % (every * self.factor) == 0

    def see(self, cost_ms: float, wall_ms: float) -> None:
        """Take one step.

        Args:
            cost_ms: What watching cost in it.
            wall_ms: Its length, watching included; not positive for a step that is not known.
        """
        if self._share > 0 and wall_ms > 0:
            self._shares.append(cost_ms / wall_ms)

    @property
    def full(self) -> bool:
        """Is there enough for a decision? The same on every rank."""
        return len(self._shares) >= _WINDOW

    def wish(self) -> int:
        """-1, 0 or 1: shorten, keep or stretch, from the steps since the last decision."""
        typical = median(self._shares)
        if typical > self._share and self.factor < _LARGEST:
            return 1
        return -1 if typical < self._share / 4 and self.factor > 1 else 0

    def decide(self, wish: int) -> str:
        """Follow a wish and start over; a sentence if the factor has changed, else nothing."""
        typical, self._shares = median(self._shares), []
        if not wish:
            return ""
        self.factor = self.factor * 2 if wish > 0 else self.factor // 2
        return (
            f"every x{self.factor} of what was asked from here on: watching took {typical:.1%} of "
            f"a step, the budget is {self._share:.1%}"
        )
