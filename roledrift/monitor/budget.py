"""The overhead budget: monitoring is thinned while it costs more than its share of a step.

Two settings are turned, the first one first. Costly measurements (role gradients, re-scoring,
texts, canaries) are taken more rarely by a *factor*. If the rest is still too much, as it is where
a step takes a tenth of a second, only one step of a *stride* is recorded at all, in hosts that can
leave a step out.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from roledrift.protocols import Reducer

PERIODIC = frozenset({"gradients", "rescore", "texts", "canaries"})
"""Costs of what is measured more rarely by the factor; all others come with every record."""
_LOG = logging.getLogger("roledrift")
_WINDOW = 8
_KEPT = 32
_LARGEST = 6
"""Largest factor and stride, as powers of two."""


@dataclass(frozen=True, slots=True)
class _StepCost:
    plain_ms: float
    fixed_ms: float | None
    periodic_ms: float
    turns: float


class Budget:
    """Decides how much monitoring is thinned.

    After each eight recorded steps it takes the mildest setting at which what was measured fits the
    budget. What comes with every record and the step without watching are medians, so one slow step
    or one slow write changes nothing.

    Args:
        share: Part of the time of an unwatched step that watching may take; 0 switches it off.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._steps: deque[_StepCost] = deque(maxlen=_KEPT)
        self._new = 0
        self._carried = 0.0
        self.factor = 1
        self.stride = 1
        self.can_skip = False
        """Whether the host can leave a step out; see :meth:`roledrift.monitor.Monitor.skips`."""

    def due(self, step: int, every: int) -> bool:
        """True if a measurement that is asked for every ``every`` steps is due now; 0 is never."""
        return every > 0 and step % (every * self.factor) == 0

    def observe(
        self, cost_ms: Mapping[str, float], wall_ms: float, *, recorded: bool = True
    ) -> None:
        """Take the cost of one step into account.

        Args:
            cost_ms: What watching cost in it, by part.
            wall_ms: Its length, watching included; not positive for a step that is not known.
            recorded: Whether it has a record.
        """
        if self._share <= 0 or wall_ms <= 0:
            return
        total, periodic = sum(cost_ms.values()), sum(cost_ms.get(name, 0.0) for name in PERIODIC)
        # A record's cost goes on after its step, when it is written.
        self._carried += total - periodic
        fixed = None
        if recorded:
            fixed, self._carried = self._carried, 0.0
        self._steps.append(_StepCost(wall_ms - total, fixed, periodic, 1 / self.factor))
        self._new += recorded

    @property
    def full(self) -> bool:
        """True if there is enough data for a decision; the same on every rank."""
        return self._new >= _WINDOW

    def _predicted(self) -> Callable[[int, int], float]:
        """Share of a plain step that watching takes at a factor and a stride."""
        plain = max(median(step.plain_ms for step in self._steps), 1e-9)
        fixed = median(step.fixed_ms for step in self._steps if step.fixed_ms is not None)
        # At factor 1: a measurement every fourth step costs a quarter of itself in each step.
        periodic = sum(step.periodic_ms for step in self._steps)
        periodic /= sum(step.turns for step in self._steps)
        return lambda factor, stride: (fixed / stride + periodic / factor) / plain

    def wish(self) -> tuple[int, int]:
        """Return the powers of two of the factor and the stride that fit the budget."""
        share = self._predicted()
        now = (self.factor, self.stride)
        for factor, stride in self._settings():
            # Back to a milder setting only with room to spare, or it would go back and forth.
            milder = factor < now[0] or stride < now[1]
            if share(factor, stride) <= self._share * (0.5 if milder else 1.0):
                return factor.bit_length() - 1, stride.bit_length() - 1
        return _LARGEST, _LARGEST if self.can_skip else 0

    def _settings(self) -> Iterator[tuple[int, int]]:
        for power in range(_LARGEST + 1):
            for other in range(power + 1 if self.can_skip else 1):
                yield 1 << power, 1 << other

    def decide(self, wish: tuple[int, int]) -> str:
        """Apply a wish and start over; return a sentence if something has changed."""
        share = self._predicted()
        before = share(1, 1)
        self._new = 0
        wanted = (1 << wish[0], 1 << wish[1])
        if wanted == (self.factor, self.stride):
            return ""
        self.factor, self.stride = wanted
        less = "as often as configured" if self.factor == 1 else f"{self.factor} times less often"
        skipped = f" and one step in {self.stride} is recorded" if self.stride > 1 else ""
        return (
            f"from here on, gradients, re-scoring and texts are measured {less}{skipped}: at the "
            f"configured rate, monitoring takes {before:.1%} of a step and the budget is "
            f"{self._share:.1%}"
        )


class Pace:
    """Keeps a budget step by step, identically on all ranks.

    Args:
        budget: What is kept.
        reducer: Spreads the first rank's decision; None for a single process.
    """

    def __init__(self, budget: Budget, reducer: Reducer | None) -> None:
        self._budget = budget
        self._reducer = reducer
        self._last: float | None = None
        self._reported = False

    def step(self, cost_ms: Mapping[str, float], end: float, *, recorded: bool = True) -> str:
        """Take the step that ends at ``end`` seconds; a sentence if the pace has changed."""
        changed = self._step(cost_ms, end, recorded=recorded)
        if changed:
            # Once aloud; all changes are in the records.
            (_LOG.info if self._reported else _LOG.warning)("%s", changed)
            self._reported = True
        return changed

    def _step(self, cost_ms: Mapping[str, float], end: float, *, recorded: bool) -> str:
        budget = self._budget
        if self._last is not None:
            budget.observe(cost_ms, (end - self._last) * 1e3, recorded=recorded)
        self._last = end
        if not budget.full:
            return ""
        factor, stride = budget.wish()
        return budget.decide((self._spread(factor), self._spread(stride)))

    def _spread(self, power: int) -> int:
        if self._reducer is None:
            return power
        return sum(self._reducer.spread(power > level) for level in range(_LARGEST))
