"""One statistic of one role leaving its baseline in one direction: what several detectors ask."""

from __future__ import annotations

from dataclasses import dataclass

from roledrift.config import Config
from roledrift.detect.baseline import BELIEVABLE, Baseline, Scale, Warmup, measured
from roledrift.detect.sequential import Alarm, Cusum, decision_for
from roledrift.records import StepRecord

REFERENCE = 1.0
"""Excess per value, in robust standard deviations, that adds no evidence."""

FALSE_ALARMS = 0.04
"""Expected number per 100 healthy records, from which the evidence that is needed is solved."""


@dataclass(frozen=True, slots=True)
class SignOf:
    """What is looked for.

    Attributes:
        statistic: Name of the statistic in the records.
        scale: Where values are compared.
        effect: How far from the baseline matters, on the scale; negative for a fall.
        patience: Values in a row that far.
        pool: Things (pairs, spans) that a value must be the mean of: records are pooled until there
            are so many. A share of ten things is noise; that of thirty is a number.
    """

    statistic: str
    scale: Scale
    effect: float
    patience: int = 3
    pool: float = 0.0


class Sign:
    """Watches for one sign in one role.

    Args:
        of: What is looked for.
        config: The baseline, and after how many clean values an excursion is forgotten.
    """

    def __init__(self, of: SignOf, config: Config) -> None:
        self.of = of
        self.now: float | None = None
        """The latest value; None before there is any."""
        self.fresh = False
        """True if the latest record brought a value that was judged."""
        self.large = False
        """True while the latest value is as far from the baseline as matters."""
        self._warmup = Warmup(config.baseline, of.scale)
        cusum = Cusum(REFERENCE, decision_for(FALSE_ALARMS))
        self._alarm = Alarm(cusum, patience=of.patience, forget_after=config.close_after)
        self._n = self._total = 0.0

    @property
    def seen(self) -> bool:
        """True once there was any value."""
        return self._warmup.seen or self._n > 0

    @property
    def lacks(self) -> int:
        """Values that the baseline still wants."""
        return self._warmup.lacks

    @property
    def baseline(self) -> Baseline | None:
        """The baseline once it is full."""
        return self._warmup.baseline

    @property
    def drifting(self) -> bool:
        """True while the effect persists and the evidence is complete."""
        return self._alarm.drifting

    @property
    def onset(self) -> int | None:
        """First step of the present excursion."""
        return self._alarm.cusum.onset

    @property
    def cast(self) -> bool | None:
        """The sign as a vote: None before anything was judged."""
        return None if self.baseline is None or self.now is None else self.drifting

    def see(self, record: StepRecord, role: str) -> None:
        """Take one record."""
        self.take(record.step, self._pooled(record.counted(role, self.of.statistic)))

    def take(self, step: int, value: float | None) -> None:
        """Take one value; None if the record has none."""
        base, value = self._warmup.baseline, measured(value)
        self.fresh = base is not None and value is not None
        self._warmup.see(value)
        if value is None:
            return
        self.now = value
        if base is None:
            return
        way = 1.0 if self.of.effect > 0 else -1.0
        gone = way * (self.of.scale.on(value) - base.center)
        wanted = abs(self.of.effect)
        effect = max(wanted, BELIEVABLE * base.spread)
        self.large = gone >= effect
        self._alarm.see(
            step,
            gone / base.sigma,
            least=effect / base.sigma,
            effect=self.large,
            clean=gone < effect / 2,
            correlation=base.correlation,
        )
        # A trend the other way (entropy that falls as it should) is no spread to be excused by.
        healthy = abs(gone) < wanted / 2 and self._alarm.cusum.quiet
        self._warmup.learn(value, healthy=healthy)

    def _pooled(self, counted: tuple[float, float] | None) -> float | None:
        if counted is None or measured(counted[1]) is None:
            return None
        self._n += counted[0]
        self._total += counted[0] * counted[1]
        if self._n <= 0 or self._n < self.of.pool:
            return None
        mean, self._n, self._total = self._total / self._n, 0.0, 0.0
        return mean

    def __str__(self) -> str:
        name = self.of.statistic
        if self.baseline is None or self.now is None:
            return name
        return f"{name} {self.baseline.typical:.3g} -> {self.now:.3g}"
