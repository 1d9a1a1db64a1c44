"""The components of a monitor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from roledrift.detect.suite import DetectorSuite
from roledrift.monitor.budget import Budget
from roledrift.notify.heartbeat import Heartbeat
from roledrift.protocols import Notifier, Probe, Reducer, Sink
from roledrift.records import Sample, StepRecord


@dataclass(frozen=True, slots=True)
class MonitorComponents:
    """The components of a monitor.

    Attributes:
        probes: Measure spans.
        judge: All detectors; None records without judging.
        sinks: Keep records.
        notifiers: Send notices to people and programs.
        reducer: Adds over ranks; None for a single process.
        history: Records of earlier segments of the same run, for a resumed run.
        texts: Texts of earlier segments, likewise.
        conclusion: Gives the headline of the run after so many steps.
        pulse: Watches for silence; it learns of every step and of the end.
        budget: Limits the overhead; by default nothing is thinned.
    """

    probes: Sequence[Probe] = ()
    judge: DetectorSuite | None = None
    sinks: Sequence[Sink] = ()
    notifiers: Sequence[Notifier] = ()
    reducer: Reducer | None = None
    history: Callable[[], Iterable[StepRecord]] | None = None
    texts: Callable[[], Iterable[Sample]] | None = None
    conclusion: Callable[[int], str] | None = None
    pulse: Heartbeat | None = None
    budget: Budget = field(default_factory=lambda: Budget(0.0))
