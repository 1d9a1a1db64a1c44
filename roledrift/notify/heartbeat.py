"""An alarm for a run that has gone silent, raised inside the training process.

A thread looks at the clock; it touches neither the trainer nor the run directory. It can speak as
long as Python runs: a collective that hangs lets it, a killed process does not (for that,
``roledrift watch`` and ``roledrift check`` look at the run from outside).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import replace
from statistics import median

from roledrift.judgement import Alert, alert_id
from roledrift.notices import Change, Notice
from roledrift.protocols import Notifier
from roledrift.records import RunHeader

_LOG = logging.getLogger("roledrift")

FINDING = "silent"
_ENOUGH, _KEPT = 3, 50


class Heartbeat:
    """Sends one notice per silence when no step has come for too long, and one when it ends.

    Too long is the larger of ``minutes`` and ``steps`` times the median time between two steps.

    Args:
        notifiers: Where notices go.
        header: Of the run.
        minutes: Silence is at least so long; 0 for no such bound.
        steps: Median steps of silence; counts once three steps have been timed. 0 for no bound.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        notifiers: Sequence[Notifier],
        header: RunHeader,
        *,
        minutes: float = 0.0,
        steps: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._notifiers, self._header = notifiers, header
        self._minutes, self._steps = minutes, steps
        self._clock = clock
        self._lock = threading.RLock()
        self._times: deque[float] = deque(maxlen=_KEPT)
        self._last = clock()
        self._step: int | None = None
        self._notified: Alert | None = None
        self._resumed = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        # trackio's open run is known to the context of the thread that steps, not to ours.
        self._context = copy_context()

    def start(self) -> None:
        """Start watching the clock."""
        self._thread = threading.Thread(target=self._run, name="roledrift heartbeat", daemon=True)
        self._thread.start()

    def beat(self, step: int) -> None:
        """Note that a step was finished."""
        with self._lock:
            now = self._clock()
            if self._step is not None and self._notified is None:
                self._times.append(now - self._last)
            self._last, self._step = now, step
            self._context = copy_context()
            self._resumed = self._notified is not None

    def look(self) -> Alert | None:
        """Return the notice that is due now: the run is silent, or it goes on again; else None."""
        with self._lock:
            if self._resumed and self._notified is not None:
                alert = replace(
                    self._notified,
                    level="INFO",
                    state="closed",
                    step=self._step or 0,
                    title="the run steps again",
                    text=f"Step {self._step} was finished.",
                    advice=(),
                )
                self._notified, self._resumed = None, False
                return alert
            quiet, limit = self._clock() - self._last, self.limit
            if self._notified is not None or not limit or quiet <= limit:
                return None
            self._notified = self._silent(quiet)
            return self._notified

    @property
    def limit(self) -> float:
        """Seconds without a step that count as silence; 0 until that is known."""
        with self._lock:
            paced = median(self._times) * self._steps if len(self._times) >= _ENOUGH else 0.0
            return max(self._minutes * 60, paced)

    def close(self) -> None:
        """Stop watching. Calling it again does nothing."""
        self._over.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2.0)

    def _silent(self, quiet: float) -> Alert:
        step = 0 if self._step is None else self._step
        since = "the start" if self._step is None else f"step {self._step}"
        usual = f"; a step usually takes {_span(median(self._times))}" if self._times else ""
        return Alert(
            id=alert_id("heartbeat", "*", step),
            detector="heartbeat",
            finding=FINDING,
            role="*",
            policy="",
            level="WARN",
            state="open",
            step=step,
            onset=step,
            title=f"no step since {since}, for {_span(quiet)}",
            text=f"No step was finished for {_span(quiet)}, the last was {since}{usual}.",
            statistic="seconds since the last step",
            value=quiet,
            threshold=self.limit,
            baseline=median(self._times) if self._times else None,
            advice=(
                "look at the trainer's processes: one that hangs or waits holds up all others",
            ),
        )

    def _run(self) -> None:
        while not self._over.wait(min(max((self.limit or 4.0) / 4, 0.05), 5.0)):
            alert = self.look()
            if alert is not None:
                self._tell(alert)

    def _tell(self, alert: Alert) -> None:
        change: Change = "resumed" if alert.state == "closed" else "silent"
        notice = Notice(change, alert.step, alert.text, alert=alert)
        for notifier in self._notifiers:
            try:
                self._context.run(notifier.notify, notice, self._header)
            except (OSError, RuntimeError, ValueError, TypeError, AttributeError) as error:
                _LOG.warning("heartbeat: %s could not tell (%s)", type(notifier).__name__, error)


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
