"""``accuracy_cliff``: the workflow solves clearly less than it already did.

It is the damage itself: what the other detectors warn of is measured by how long before it they
spoke. Noise has dips as well, and the best of many values is a lucky one, so a fall must be large
against the best, large against the noise, and still there at the next value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from roledrift.config import Config
from roledrift.detect.abstaining import waiting
from roledrift.detect.baseline import measured
from roledrift.records import State, StepRecord, Verdict
from roledrift.sums import EVERYONE
from roledrift.thresholds import AccuracyCliffConfig
from roledrift.workflow import Workflow

NAME = "accuracy_cliff"
REWARD_DROP = "reward_drop"
"""The lesser finding: only a reward is known, which need not be what the workflow solves."""

UNKNOWN_NOISE = 0.05
"""Standard deviation assumed while none can be told: that of a share of 100 problems."""

_LEAST_NOISE = 0.02
_ENOUGH_JUMPS = 6


@dataclass(frozen=True, slots=True)
class _Source:
    """One series that tells how much is solved.

    Attributes:
        finding: What a cliff in it is called.
        block: Records averaged to one value: validations stand alone, training batches do not.
    """

    name: str
    finding: str
    block: int


@dataclass(frozen=True, slots=True)
class _Drop:
    """The latest value against the best before it."""

    now: float
    best: float
    best_step: int
    noise: float
    threshold: float
    enormous: bool

    @property
    def size(self) -> float:
        return self.best - self.now


class _Series:
    """Values of one source for one role, and the drop of the latest."""

    def __init__(self, source: _Source, settings: AccuracyCliffConfig) -> None:
        self.source = source
        self.seen = False
        self.onset: int | None = None
        self.below = 0
        self.latest: _Drop | None = None
        self._settings = settings
        self._best: tuple[float, int] | None = None
        self._jumps: list[float] = []
        self._last: float | None = None
        self._block: list[tuple[int, float, float | None]] = []

    def see(self, step: int, value: float, n: float | None) -> _Drop | None:
        """The drop that ``value`` completes; None in the middle of a block and before a best.

        Args:
            step: Its step.
            value: What was measured.
            n: Things that it is the mean of; None if not known or no share.
        """
        self.seen = True
        self._block.append((step, value, n))
        if len(self._block) < self.source.block:
            return None
        first = self._block[0][0]
        now = fmean(one for _, one, _ in self._block)
        counts = [count for _, _, count in self._block]
        n = math.fsum(c or 0.0 for c in counts) if all(counts) else None
        self._block.clear()
        before, self._last = self._last, now
        if self._best is None or before is None:
            self._best = (now, step)
            return None
        # The noise is that of the past: the fall in question would widen its own threshold.
        self.latest = drop = self._drop(now, n)
        self._jumps.append(now - before)
        self.below = self.below + 1 if drop.size >= drop.threshold else 0
        if drop.size < drop.threshold / 2:
            self.onset = None
        elif self.onset is None:
            self.onset = first
        if now > self._best[0]:
            self._best = (now, step)
        return drop

    def _drop(self, now: float, n: float | None) -> _Drop:
        settings = self._settings
        best, best_step = self._best or (now, 0)
        noise = self._noise(best, n)
        threshold = max(settings.share * abs(best), settings.floor, settings.noise * noise)
        enormous = best - now >= max(2 * settings.share * abs(best), 2 * settings.noise * noise)
        return _Drop(now, best, best_step, noise, threshold, enormous)

    def _noise(self, best: float, n: float | None) -> float:
        """Standard deviation of one value: binomial where counts are known, and as it is seen.

        Differences of neighbours leave the trend out; their median takes what is left of it.
        """
        found = [_LEAST_NOISE]
        if n and 0.0 <= best <= 1.0:
            found.append(math.sqrt(max(best * (1 - best), 0.25 / n) / n))
        if len(self._jumps) >= _ENOUGH_JUMPS:
            center = median(self._jumps)
            spread = median([abs(jump - center) for jump in self._jumps])
            found.append(1.4826 * spread / math.sqrt(2))
        elif not n:
            found.append(UNKNOWN_NOISE)
        return max(found)


class AccuracyCliff:
    """Watches the accuracy of the workflow, and of each role that is graded on its own.

    Per role the best source that the run has: ``val_accuracy``; else the training ``accuracy`` in
    blocks; else the reward, whose fall is only called ``reward_drop``. Beside validations a fall of
    the training accuracy is a ``reward_drop`` too: its problems may have become harder. A role has
    a source of its own where ``correct`` was recorded for it.

    Args:
        workflow: Roles.
        config: Its section, and the learning-rate warm-up to skip.
    """

    name = NAME

    def __init__(self, workflow: Workflow, config: Config) -> None:
        self._settings = settings = config.detectors.accuracy_cliff
        self._validated = _Series(_Source("val_accuracy", NAME, 1), settings)
        self._trained = _Series(_Source("accuracy", NAME, settings.block), settings)
        self._rewarded = _Series(_Source("reward", REWARD_DROP, settings.block), settings)
        self._graded = {
            role: _Series(_Source("correct", NAME, settings.block), settings)
            for role in workflow.role_names
        }

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """A verdict for all roles together, and one per role that is graded on its own."""
        verdicts = [self._everyone(record)]
        for role, series in self._graded.items():
            stat = record.stat(role, "correct")
            value = None if stat is None else measured(stat.mean)
            if stat is not None and value is not None:
                verdicts.append(self._judge(role, series, series.see(record.step, value, stat.n)))
        return [one for one in verdicts if one is not None]

    def _everyone(self, record: StepRecord) -> Verdict | None:
        totals, step = record.totals, record.step
        reward = totals.get("reward", record.mean(EVERYONE, "reward"))
        news = False
        for series, value, n in (
            (self._validated, totals.get("val_accuracy"), totals.get("val_n")),
            (self._trained, totals.get("accuracy"), None),
            (self._rewarded, reward, None),
        ):
            known = measured(value)
            if known is not None:
                news |= series.see(step, known, measured(n)) is not None
        accurate = self._validated.seen or self._trained.seen
        sources = (self._validated, self._trained) if accurate else (self._rewarded,)
        told = [(one, one.latest) for one in sources if one.latest is not None]
        if not told:
            need = "one more validation, or more steps"
            known_at_all = accurate or self._rewarded.seen
            return waiting(
                NAME, EVERYONE, need if known_at_all else "an accuracy or a reward in totals"
            )
        # A rare validation stays news until the next one: the worse of the two speaks.
        worst, drop = max(told, key=lambda one: one[1].size / one[1].threshold)
        return self._judge(EVERYONE, worst, drop) if news else None

    def _judge(self, role: str, series: _Series, drop: _Drop | None) -> Verdict | None:
        if drop is None:
            return None
        persists = series.below >= max(self._settings.patience, 1)
        fallen = persists or drop.enormous
        finding = series.source.finding
        if series is self._trained and self._validated.seen:
            # Training problems may have become harder, validation problems are always the same.
            finding = REWARD_DROP
        state: State = "drift" if fallen else "watch" if series.onset is not None else "ok"
        name = series.source.name
        reason = f"{name} {drop.now:.3g}, best {drop.best:.3g} at step {drop.best_step}"
        reason += f"; {drop.threshold:.2g} below the best is a fall (noise {drop.noise:.2g})"
        if state == "watch" and series.below:
            reason += f"; seen {series.below} of {self._settings.patience} times in a row"
        return Verdict(
            detector=NAME,
            role=role,
            state=state,
            finding=finding if fallen else "",
            statistic=name,
            value=drop.now,
            threshold=drop.best - drop.threshold,
            baseline=drop.best,
            onset=series.onset,
            reason=reason,
        )
