"""When a step's record is finished: at its end, or once the trainer has logged what belongs in it.

Trainers log after the step is over. Of a single policy the logged numbers are that policy's, so its
record waits for them: clip ratios, gradient norm, KL, reward functions one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roledrift.monitor.metric_monitor import MetricMonitor
from roledrift_trl.forward import ForwardWatch
from roledrift_trl.watch import Watch


class Ending:
    """Finishes the records of one training.

    Args:
        monitor: Writes them.
        watch: Knows what was measured.
        alone: Whether a single policy is trained, whose logs are taken.

    Attributes:
        stop: Whether the training is to stop.
    """

    def __init__(self, monitor: MetricMonitor, watch: Watch | ForwardWatch, *, alone: bool) -> None:
        self.stop = False
        self._monitor, self._watch, self._alone = monitor, watch, alone
        self._waits: int | None = None

    def after_step(self, step: int, *, logs: bool) -> None:
        """A step is over.

        Args:
            step: Optimizer steps done.
            logs: Whether the trainer logs it.
        """
        self.finish()
        if self._watch.after_step(step):
            self._waits = step
            if not (logs and self._alone):
                self.finish()

    def logged(self, logs: Mapping[str, Any]) -> None:
        """The trainer is about to log; it adds the means of what it has gathered itself."""
        if not self._alone:
            return
        if "train_runtime" not in logs:  # the summary of a whole training is of no step
            with self._monitor.fenced("log"):
                self._monitor.add_metrics({**logs, **_gathered(self._watch.trainer)})
        self.finish()

    def finish(self) -> None:
        """Finish the record that waits, if one does."""
        step, self._waits = self._waits, None
        if step is not None:
            self.stop = self._monitor.end_step(step).stop or self.stop


def _gathered(trainer: Any) -> dict[str, float]:
    """Means of what a trainer of TRL has gathered since its last log, as it will log them."""
    lists = getattr(trainer, "_metrics", {}).get("train", {})
    return {name: sum(values) / len(values) for name, values in lists.items() if values}
