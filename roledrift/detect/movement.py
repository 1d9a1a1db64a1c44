"""How far a role's policy moves per iteration, judged against its own start."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from roledrift.config import BaselineConfig
from roledrift.detect.baseline import LENGTH, MOVEMENT, Baseline, Warmup, measured
from roledrift.detect.sequential import Alarm, Cusum, chance_of, decision_for
from roledrift.records import StepRecord
from roledrift.thresholds import GradientAmplificationConfig, PolicyDriftConfig

SOURCES: Mapping[str, float] = {"update.k3": 1.0, "old.k3": 1.0, "rollout.chi2": 2.0}
"""What measures movement, best first, and its size for 1 nat of k3 (small steps: chi² = 2 k3)."""

UPDATE_NEED = "update.k3 (re-score a few rows after the optimizer step)"
_BEST = "update.k3"
_ZERO = 1e-6


@dataclass(frozen=True, slots=True)
class Moved:
    """A role's movement in one record.

    Attributes:
        source: The statistic that measures it.
        own: Median over the last records.
        baseline: Its baseline.
        threshold: Where movement begins to matter: ``drift_ratio`` baselines, and the floor.
        moving: ``own`` is at or above the threshold.
        drifting: It has been for long enough, and the evidence is complete.
        evidence: Value of the CUSUM.
        chance: What complete evidence is worth, in words.
        persisted: Records in a row with movement.
        onset: First step of the excursion; None while there is none.
    """

    source: str
    own: float
    baseline: Baseline
    threshold: float
    moving: bool
    drifting: bool
    evidence: float
    chance: str
    persisted: int
    onset: int | None

    @property
    def growth(self) -> float:
        """Movement over the baseline."""
        return self.own / self.baseline.typical


class Movement:
    """How far one role's policy moves per iteration, in every way that was measured.

    Drift needs all of: the median over ``median_of`` records at ``drift_ratio`` baselines and above
    ``floor``, for ``patience`` records; and a completed CUSUM of standardised log-movement.

    Args:
        role: The role.
        settings: When movement is drift.
        baseline: What its start is.
        forget_after: As for :class:`roledrift.detect.sequential.Alarm`.
    """

    def __init__(
        self,
        role: str,
        settings: PolicyDriftConfig | GradientAmplificationConfig,
        *,
        baseline: BaselineConfig,
        forget_after: int,
    ) -> None:
        self.role = role
        self.updates: float | None = None
        """Optimizer steps of the last iteration; None if they were not counted."""
        self._settings = settings
        self._warmups = {source: Warmup(baseline, MOVEMENT) for source in SOURCES}
        self._recent: dict[str, deque[float]] = {
            source: deque(maxlen=max(settings.median_of, 1)) for source in SOURCES
        }
        self._medians: dict[str, float] = {}
        self._peaks: dict[str, float] = {}
        self._ppl = Warmup(baseline, LENGTH)
        self._ppl_now: float | None = None
        self._alarm = Alarm(
            Cusum(settings.reference, decision_for(settings.false_alarms)),
            patience=settings.patience,
            forget_after=forget_after,
        )
        self.source = ""
        """The best source that was ever measured and can move; empty if there is none.

        The ratio of old to current policy is 1 by construction as long as every batch is used for
        one optimizer step: such a constant zero measures nothing.
        """
        self.now: Moved | None = None
        """The last judgement; None before there is one."""

    def see(self, record: StepRecord) -> None:
        """Take one record and judge it, if movement was measured in it."""
        values: dict[str, float | None] = {}
        for source, warmup in self._warmups.items():
            values[source] = value = measured(record.mean(self.role, source))
            warmup.see(value)
            if value is not None:
                recent = self._recent[source]
                recent.append(value)
                self._medians[source] = now = median(recent)
                if len(recent) == recent.maxlen:
                    self._peaks[source] = max(self._peaks.get(source, 0.0), now)
        self._see_rest(record)
        self.source = source = self._best()
        value = values[source] if source else None
        baseline = self.baseline(source)
        if value is not None and baseline is not None:
            self.now = self._judge(record.step, source, value, baseline)

    def _see_rest(self, record: StepRecord) -> None:
        ppl = measured(record.mean(self.role, "ppl"))
        self._ppl.see(ppl)
        if ppl is not None:
            self._ppl_now = ppl
            self._peaks["ppl"] = max(self._peaks.get("ppl", 0.0), ppl)
        updates = record.stat(self.role, "updates")
        if updates is not None:
            self.updates = updates.mean if updates.high is None else updates.high

    def _judge(self, step: int, source: str, value: float, baseline: Baseline) -> Moved:
        settings = self._settings
        own, base = self._medians[source], baseline.typical
        # Not what healthy records teach about their spread: a collapse begins with records that
        # look healthy; learning from them found 106 of 150 simulated ones instead of 148, later.
        large = max(settings.drift_ratio * base, settings.floor * SOURCES[source])
        moving = own >= large
        # The median shows the effect, the single record is the evidence: medians are dependent.
        drifting = self._alarm.see(
            step,
            baseline.z(value),
            least=baseline.distance(large / base),
            effect=moving,
            clean=not moving,
        )
        cusum = self._alarm.cusum
        return Moved(
            source=source,
            own=own,
            baseline=baseline,
            threshold=large,
            moving=moving,
            drifting=drifting,
            evidence=cusum.value,
            chance=chance_of(settings.false_alarms, cusum.decision),
            persisted=self._alarm.persisted,
            onset=cusum.onset if moving else None,
        )

    def _best(self) -> str:
        for source, warmup in self._warmups.items():
            base = warmup.baseline
            constant = base is not None and base.typical <= _ZERO and source != _BEST
            if warmup.seen and not constant:
                return source
        return ""

    def baseline(self, source: str) -> Baseline | None:
        """Baseline of a source; None while it is not full."""
        return self._warmups[source].baseline if source else None

    def lacks(self, source: str) -> int:
        """Records that the baseline of a source still wants."""
        return self._warmups[source].lacks

    def recent(self, source: str) -> float | None:
        """Median of a source over the last records; None before there are any."""
        return self._medians.get(source)

    def peak(self, name: str) -> float | None:
        """Largest value (median over records, of ``ppl`` single ones) over the baseline."""
        base = self._ppl.baseline if name == "ppl" else self._warmups[name].baseline
        peak = self._peaks.get(name)
        return None if base is None or peak is None else peak / base.typical

    def told(self, now: Moved) -> str:
        """The movement in words."""
        since = f" since step {now.onset}" if now.onset is not None else ""
        base = now.baseline.typical
        return (
            f"{self.role} moves x{now.growth:.1f} per step{since} ({now.source} {base:.2g} -> "
            f"{now.own:.2g})"
        )

    def told_ppl(self) -> str:
        """The growth of perplexity in words; empty if it was not measured."""
        if self._ppl_now is None or self._ppl.baseline is None:
            return ""
        return f"; perplexity {self._ppl.baseline.typical:.3g} -> {self._ppl_now:.3g}"

    def short_of_drift(self, now: Moved) -> str:
        """Which condition of drift does not hold, for a role that moves."""
        settings = self._settings
        if not self._alarm.cusum.complete:
            return f"evidence {now.evidence:.1f} of {self._alarm.cusum.decision:.1f}"
        return f"in {now.persisted} of {settings.patience} records in a row"
