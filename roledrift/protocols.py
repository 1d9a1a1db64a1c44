"""Every extension point of the library on one page.

An extension is an object of one of these shapes and a module with a card (``measure`` for probes,
``detect/detectors``), or an entry point in a distribution of your own
(:mod:`roledrift.extensions`); there is nothing to inherit from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from roledrift.judgement import Alert, Incident, Verdict
from roledrift.notices import Notice
from roledrift.records import GramRecord, RunHeader, Sample, StepRecord
from roledrift.spans import SpanTable
from roledrift.sums import Sums


class Probe(Protocol):
    """Turns span rows into sums."""

    @property
    def name(self) -> str:
        """Short name, unique among probes."""
        ...

    @property
    def needs(self) -> frozenset[str]:
        """Columns without which the probe measures nothing; see ``SpanTable.present``."""
        ...

    def measure(self, spans: SpanTable) -> Sums:
        """Sums of ``spans``. Adding the sums of two tables equals measuring them stacked."""
        ...


@runtime_checkable
class SpanSource(Protocol):
    """Collects spans during a step, on the device, and hands them over once per step."""

    def drain(self) -> Sequence[SpanTable]:
        """Return all spans since the last call; only here does the host wait for the device."""
        ...

    def faults(self) -> dict[str, int]:
        """Return what went wrong since the last call, and how often."""
        ...


@runtime_checkable
class GradientSource(Protocol):
    """Collects role gradients during a step and hands over their Gram matrices."""

    def drain_gradients(self) -> Sequence[GramRecord]:
        """Return one record per policy updated since the last call; empty if none was measured."""
        ...

    def stretch(self, factor: int) -> None:
        """Measure ``factor`` times more rarely than configured; 1 is as configured."""
        ...

    def cost_ms(self) -> float:
        """Return the time spent in the host's forward and backward since the last call, in ms."""
        ...

    def faults(self) -> dict[str, int]:
        """Return what went wrong since the last call, and how often."""
        ...


class Detector(Protocol):
    """Judges one failure over the run, record by record.

    A :class:`~roledrift.detect.cards.Card` makes it.
    """

    def update(self, record: StepRecord) -> Iterable[Verdict | None]:
        """Return at most one verdict per role for this record.

        A role's last verdict stands while there is none, or None.
        """
        ...


class Sink(Protocol):
    """Stores what is measured."""

    def write_step(self, record: StepRecord) -> None:
        """Store one step."""
        ...

    def write_alert(self, alert: Alert) -> None:
        """Store one alert; it must be durable before this returns."""
        ...

    def write_incident(self, incident: Incident) -> None:
        """Store the latest state of an incident; it must be durable before this returns."""
        ...

    def write_samples(self, step: int, samples: Sequence[Sample]) -> None:
        """Store the texts of one step."""
        ...

    def close(self) -> None:
        """Finish; nothing more will come."""
        ...


class Notifier(Protocol):
    """Sends notices to a person or another program."""

    def notify(self, notice: Notice, header: RunHeader) -> None:
        """Send one notice. Must not block for long."""
        ...


@runtime_checkable
class Closable(Protocol):
    """A notifier that has something to finish when the run ends."""

    def close(self) -> None:
        """Flush pending notices, with a timeout."""
        ...


class Reducer(Protocol):
    """Adds sums over ranks and broadcasts decisions."""

    def is_first(self) -> bool:
        """True on the rank that writes, judges and decides."""
        ...

    def add(self, sums: Sums) -> Sums:
        """Sum over ranks; every rank calls it at the same points with any set of keys."""
        ...

    def spread(self, stop: bool) -> bool:
        """Return the first rank's decision on every rank."""
        ...
