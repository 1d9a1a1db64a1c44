"""A monitor that takes a trainer's own metric dictionaries, whatever its names for them."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from roledrift.errors import CaptureError
from roledrift.ingest.keys import Translator, fails, flat, useful
from roledrift.ingest.values import integer, number
from roledrift.judgement import Decision
from roledrift.metric_names import not_understood, resolve
from roledrift.monitor.monitor import VALIDATION, Monitor
from roledrift.records import Stat
from roledrift.sums import EVERYONE

_LOG = logging.getLogger("roledrift")
_POOLED = "as logged, n unknown"
_EVALUATED = ("evaluation", "validation")


class MetricMonitor(Monitor):
    """What :func:`roledrift.open_monitor` opens: a monitor that understands logged metrics.

    Two lines for a training of a single policy::

        monitor = open_monitor("runs/x")
        for step in range(steps):
            ...
            monitor.log(metrics, step)  # the dictionary that goes to wandb

    Args:
        args: As for :class:`~roledrift.monitor.Monitor`; likewise ``kwargs``.
        out: Run directory.
        say: Shows a line to the person who started the run; None shows nothing.

    Attributes:
        out: Run directory, also where it was named automatically.
    """

    def __init__(
        self, *args: Any, out: Path, say: Callable[[str], None] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.out, self._say = out, say
        self._passed: dict[str, None] = {}
        self._translate = Translator(passed=self._passed)
        self._mentioned: set[str] = set()

    def log(self, metrics: Mapping[str, Any], step: int) -> Decision:
        """Take the metrics of a step: write its record, judge it and pass on alerts.

        Keys are understood by their names (:mod:`roledrift.metric_names`), as ``roledrift check``
        does with a log. Those that are not are named once, with the nearest known one. The score
        of an evaluation that comes alone stands in the record of the next step.

        Args:
            metrics: Names to numbers, also nested, also scalars of numpy and torch.
            step: Optimizer iteration; it grows from call to call.

        Returns:
            What the host should do. Errors in the dictionary or the step are logged once and
            counted; nothing is raised.
        """
        in_order = False
        with self.fenced("step of metrics"):
            in_order = self._follows(step)
        if not in_order:
            return Decision()
        understood = self.add_metrics(metrics)
        # Ranks meet in every step, whatever each of them has logged.
        if not understood and self._parts.reducer is None:
            return Decision()
        self.label(pooling=_POOLED)
        return self.end_step(step)

    def close(self) -> None:
        """Close the run and print its outcome. Calling it again does nothing."""
        closed = self._closed
        super().close()
        if not closed and self._say is not None:
            self._say(self.closing_line(self.out))

    def add_metrics(self, metrics: Mapping[str, Any]) -> bool:
        """Take metrics for the current step's record, in loops that call :meth:`end_step`.

        A statistic that is measured in the same step counts more than a logged one.

        Args:
            metrics: As for :meth:`log`.

        Returns:
            Whether they say anything about the training itself.
        """
        understood = False
        with self.fenced("metrics"):
            numbers = _numbers(metrics)
            used = {
                key: value
                for key, value in useful(numbers, self._passed).items()
                if not isinstance(value, float) or math.isfinite(value) or fails(key)
            }
            groups, totals = self._translate(used)
            understood = self._take(groups, totals)
            evaluated = any(
                (metric := resolve(key)) and metric.kind in _EVALUATED for key in numbers
            )
            unknown = [key for key in self._passed if key not in self._mentioned]
            self._mentioned.update(unknown)
            if not (understood or totals or evaluated):
                raise CaptureError(_nothing(numbers))
            if unknown:
                _LOG.warning("metrics that are not understood: %s", not_understood(unknown))
        return understood

    def _follows(self, step: int) -> bool:
        """Whether this is a step after the last one.

        Raises:
            CaptureError: If it is not.
        """
        if integer(step) is None:
            raise CaptureError(f"log(metrics, step) got the step {step!r}: give a whole number")
        if self._last is not None and step <= self._last:
            raise CaptureError(
                f"step {step} was logged after step {self._last} and is left out: give the "
                "optimizer iteration, and all metrics of a step in one dictionary"
            )
        return True

    def _take(self, groups: Mapping[str, Mapping[str, float]], totals: Mapping[str, float]) -> bool:
        roles = self.workflow.role_names
        kept: dict[str, dict[str, Stat]] = {}
        for group, numbers in groups.items():
            if group in roles or group == EVERYONE:
                kept[group] = {name: Stat(n=1, mean=value) for name, value in numbers.items()}
            else:
                self.count_fault(f"metrics of {group}, which is not a role of the workflow")
        if len(roles) == 1 and EVERYONE in kept:
            kept[roles[0]] = {**kept[EVERYONE], **kept.get(roles[0], {})}
        for group, stats in kept.items():
            self._pending.logged.setdefault(group, {}).update(stats)
        scores = {name: value for name, value in totals.items() if name in VALIDATION}
        self.add_totals(scores)
        # When a step was logged, the monitor knows better.
        own = {k: value for k, value in totals.items() if k not in (*VALIDATION, "clock")}
        self._pending.logged_totals.update(own)
        return any(kept.values()) or bool(own.keys() - {"eval_reward", "runtime"})


def _numbers(metrics: Mapping[str, Any]) -> dict[str, object]:
    if not isinstance(metrics, Mapping):
        raise CaptureError(f"metrics are a dictionary of names and numbers, got {metrics!r:.80}")
    return {key: _plain(value) for key, value in flat(metrics).items()}


def _plain(value: object) -> object:
    """A scalar of numpy or torch as a number; what holds several numbers is none."""
    if value is None or isinstance(value, int | float | str | list):
        return value
    try:
        return number(value.item())  # type: ignore[attr-defined]
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return None


def _nothing(numbers: Mapping[str, object]) -> str:
    usable = [key for key, value in numbers.items() if number(value) is not None]
    if not usable:
        return "metrics without a number: give at least a mean reward, such as {'reward': 0.4}"
    return (
        f"nothing in the metrics says how the training goes ({not_understood(usable)}): give at "
        "least a mean reward, such as {'reward': 0.4}"
    )
