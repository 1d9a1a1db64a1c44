"""A run that is being watched."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from roledrift.detect.conclusion import Conclusion, conclude
from roledrift.detect.suite import DetectorSuite
from roledrift.judgement import Alert
from roledrift.notices import Notices
from roledrift.records import StepRecord

STEPS = "steps"
"""Note of a run's header: how many steps its trainer means to take."""


@dataclass(slots=True)
class Watched:
    """One run, and its state at the latest look.

    Attributes:
        below: Folder that was asked for; the run is named by its path below it.
        planned: Steps that its trainer means to take; 0 if it did not say.
        last: Last step that was judged; None before the first.
        changed: When its files last changed, seconds since 1970.
        age: Seconds from then to the latest look.
    """

    path: Path
    suite: DetectorSuite
    roles: tuple[str, ...] = ()
    below: Path | None = None
    planned: int = 0
    records: list[StepRecord] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    notices: Notices = field(default_factory=Notices)
    last: int | None = None
    size: int = -1
    changed: float = 0.0
    age: float = 0.0
    state: str = "empty"

    @property
    def name(self) -> str:
        """Path below the folder that was asked for; of a run that was asked for, its own name."""
        if self.below is None or self.below == self.path:
            return self.path.name
        return self.path.relative_to(self.below).as_posix()

    @property
    def conclusion(self) -> Conclusion:
        """Outcome and headline of the run so far."""
        return conclude(self.suite.verdicts, self.suite.incidents, len(self.records))

    def series(self, read: Callable[[StepRecord], float | None]) -> list[float]:
        """One number of every step that has it."""
        values = (read(record) for record in self.records)
        return [value for value in values if value is not None and math.isfinite(value)]

    def baseline(self, values: list[float]) -> float | None:
        """Mean of the first values, as many as the baseline of the detectors has; None if fewer."""
        window = self.suite.config.baseline.window
        return sum(values[:window]) / window if len(values) > window else None
