"""The monitor: spans -> probes -> sums -> record -> sinks and judge -> incidents -> decision.

The components are handed in; :mod:`roledrift.monitor.open_monitor` puts the usual ones together.
The one fence around everything that can fail is here: after set-up nothing the monitor does raises
into the training loop or changes it. What failed is counted in the record and named once.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roledrift.errors import CaptureError
from roledrift.judgement import Alert, Decision, Incident
from roledrift.monitor.budget import Pace
from roledrift.monitor.checkpoints import Checkpoints
from roledrift.monitor.components import MonitorComponents
from roledrift.monitor.pending import BasePolicy, Pending
from roledrift.monitor.resuming import replay_records, replay_texts
from roledrift.monitor.textpairs import TextPairs
from roledrift.notices import Notice, Notices
from roledrift.protocols import Closable, GradientSource, SpanSource
from roledrift.records import GramRecord, RunHeader, Sample, StepRecord, summarise
from roledrift.relative import relative
from roledrift.spans import SpanTable
from roledrift.sums import Sums, add, counted

VALIDATION = frozenset({"val_accuracy", "val_n"})
"""Totals that a host may give after the step that they are about."""

_LOG = logging.getLogger("roledrift")


class Monitor:
    """Watches one run.

    In a hand-written loop::

        monitor = open_monitor(workflow="voting", out="runs/voting")
        for step in range(steps):
            monitor.observe(spans)             # or an attached source, drained once per step
            ...
            if monitor.end_step(step, {"reward": reward}).stop:
                break
        monitor.close()

    Args:
        header: What the run is.
        parts: Probes, judge, sinks, notifiers.
        strict: Let exceptions through instead of counting them (for tests).
        clock: Seconds, monotonic; for the cost of watching.
    """

    def __init__(
        self,
        header: RunHeader,
        parts: MonitorComponents,
        *,
        strict: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.header, self.workflow = header, header.workflow
        self._parts, self._strict, self._clock = parts, strict, clock
        self._sources: list[SpanSource | GradientSource] = []
        self._pending = Pending()
        self._base = BasePolicy()
        self._last: int | None = None
        self._named: set[str] = set()
        self._texts = TextPairs()
        self._notices = Notices()
        self._judged = 0
        self._checkpoints = Checkpoints()
        self._started = False
        self._pace = Pace(parts.budget, parts.reducer)
        self._inside = 0.0
        self._closed = False

    def attach(self, source: SpanSource | GradientSource) -> None:
        """Drain ``source`` at every :meth:`end_step`."""
        self._sources.append(source)

    def observe(self, spans: SpanTable) -> None:
        """Measure spans now; the caller may free them afterwards."""
        self._pending.present |= spans.present
        for comparison in spans.comparisons:
            self._pending.sources.setdefault(comparison.kind, set()).add(comparison.source)
        for probe in self._parts.probes:
            missing = probe.needs - spans.present
            if missing:
                self._pending.missing |= missing
                continue
            with self.fenced(f"probe {probe.name}", cost="probes"):
                self._pending.sums.append(probe.measure(spans))

    def observe_base(self, spans: SpanTable) -> None:
        """Measure outputs of the policy before training, such as those of a validation at step 0.

        The first record carries their statistics as its ``base``. Call it before the first
        :meth:`end_step`; a later call is a fault. Probes without their columns measure nothing.

        Args:
            spans: Outputs on problems that are not trained on; lengths and texts are enough.
        """
        with self.fenced("base policy", cost="probes"):
            self._base.measure(self._parts.probes, spans)

    def add_samples(self, samples: Iterable[Sample]) -> None:
        """Keep these texts with the current step."""
        self._pending.samples.extend(samples)

    def add_totals(self, totals: Mapping[str, float]) -> None:
        """Add numbers of the whole step, for example ``{"reward": 0.4, "val_accuracy": 0.5}``."""
        self._pending.totals.update({name: float(value) for name, value in totals.items()})

    def add_validation(self, solved: Sequence[bool]) -> None:
        """Add a validation: which of its problems were solved.

        The record gets the accuracy (totals ``val_accuracy`` and ``val_n``) and every problem's
        result: pairing two validations problem by problem shows much smaller changes. It may come
        after the :meth:`end_step` of its step.

        Args:
            solved: One per problem, the same problems in the same order every time.
        """
        with self.fenced("validation"):
            marks = "".join("1" if mark else "0" for mark in solved)
            if not marks:
                raise CaptureError("a validation without problems: leave the call out")
            self._pending.solved = marks
            self.add_totals({"val_accuracy": marks.count("1") / len(marks), "val_n": len(marks)})

    def add_updates(self, updates: Mapping[str, int]) -> None:
        """Add the optimizer steps that were taken on each role's rows since the last call.

        The step's record holds them under ``updates``, 0 for a role that is not named; without any
        call it holds nothing. A role whose rows fill three mini-batches is moved three times.

        Args:
            updates: Role to optimizer steps, for example ``{"generator": 3, "aggregator": 1}``.
        """
        with self.fenced("updates"):
            for role, times in updates.items():
                self.workflow.index(role)
                self._pending.updates[role] += int(times)

    def note_checkpoint(self, step: int, path: str | Path) -> None:
        """Note a checkpoint of the host; alerts name the last one from before the onset.

        Args:
            step: Steps done when it was written.
            path: Where it lies, as a person would type it.
        """
        with self.fenced("checkpoint"):
            self._checkpoints.note(step, path)

    def add_gradients(self, gradients: Iterable[GramRecord]) -> None:
        """Add Gram matrices of role gradients, for loops that compute them themselves."""
        self._pending.gradients.extend(gradients)

    def label(self, **facts: str) -> None:
        """Record facts about how this step's statistics came about; the report shows them."""
        self._pending.labels.update(facts)

    def count_fault(self, what: str, times: int = 1) -> None:
        """Count something that went wrong; it appears in the record and the report."""
        self._pending.faults[what] += times

    def end_step(self, step: int, totals: Mapping[str, float] | None = None) -> Decision:
        """Finish a step: write its record, judge it, pass on alerts.

        Every rank calls it once per step, in the same order as the other ranks.

        Args:
            step: Optimizer iteration of the host.
            totals: As for :meth:`add_totals`.

        Returns:
            What the host should do; the same on every rank.
        """
        with self.fenced("totals"):
            self.add_totals(totals or {})
        self._drain()
        pending, self._pending = self._pending, Pending()
        sums: Sums = {}
        with self.fenced("sums", cost="reduce", into=pending):
            roles = self.workflow.role_names if pending.updates else ()
            sums = add([*pending.sums, counted("updates", pending.updates, roles)])
        reducer = self._parts.reducer
        if reducer is not None:
            with self.fenced("reduce over ranks", cost="reduce", into=pending):
                sums = reducer.add(sums)
        base: Sums = {}
        with self.fenced("base policy", cost="reduce", into=pending):
            base = self._base.take(reducer)
        decision, self._last = Decision(), int(step)
        if self._is_first():
            decision = self._finish(step, sums, pending, base=base)
        if reducer is not None:
            with self.fenced("spread the decision"):
                decision = replace(decision, stop=reducer.spread(decision.stop))
        self._keep_budget(pending)
        return decision

    def due(self, step: int, every: int) -> bool:
        """True if a measurement asked for every so many steps is due, within the budget."""
        return self._parts.budget.due(step, every)

    def skips(self, step: int) -> bool:
        """True if the host should leave this step out: measure nothing, call :meth:`skip_step`.

        Only where steps are too short for what is measured in every one of them. A host that never
        asks records every step.
        """
        self._parts.budget.can_skip = True
        return step % self._parts.budget.stride != 0

    def skip_step(self) -> None:
        """Let a step pass without a record, instead of :meth:`end_step`."""
        self._drain_gradients()
        # What was done to the roles in it belongs to no record; what was said is kept for the next.
        self._pending.updates.clear()
        self._keep_budget(self._pending, recorded=False)
        self._pending.cost_ms.clear()

    def _keep_budget(self, pending: Pending, *, recorded: bool = True) -> None:
        """Thin what is measured while it costs more than its share."""
        with self.fenced("budget"):
            changed = self._pace.step(pending.cost_ms, self._clock(), recorded=recorded)
            if changed:
                self.label(schedule=changed)
                for source in self._gradient_sources():
                    source.stretch(self._parts.budget.factor)

    def _gradient_sources(self) -> Iterator[GradientSource]:
        return (source for source in self._sources if isinstance(source, GradientSource))

    def closing_line(self, where: str | Path) -> str:
        """Say in one line what the run in ``where`` is; empty if this process does not judge it."""
        sentence = ""
        if self._parts.conclusion is not None:
            with self.fenced("closing line"):
                sentence = self._parts.conclusion(self._judged)
        report = f"roledrift report {shlex.quote(str(where))}"
        return f"roledrift: {sentence} See: {report}" if sentence else ""

    def close(self) -> None:
        """Close sinks and notifiers. Calling it again does nothing."""
        if self._closed:
            return
        self._closed = True
        self._write_late()
        if self._parts.pulse is not None:
            with self.fenced("close"):
                self._parts.pulse.close()
        for sink in self._parts.sinks:
            with self.fenced("close"):
                sink.close()
        for notifier in self._parts.notifiers:
            if isinstance(notifier, Closable):
                with self.fenced("close"):
                    notifier.close()

    def _write_late(self) -> None:
        """Write a validation after the last step as another record of that step, not judged."""
        late = {name: x for name, x in self._pending.totals.items() if name in VALIDATION}
        if not late or self._last is None or not self._is_first():
            return
        solved = self._pending.solved
        record = StepRecord(self._last, time=_utc_now(), totals=late, solved=solved)
        for sink in self._parts.sinks:
            with self.fenced("write"):
                sink.write_step(record)

    @contextmanager
    def fenced(self, part: str, *, cost: str = "", into: Pending | None = None) -> Iterator[None]:
        """Count and time whatever goes wrong inside, instead of raising it.

        Args:
            part: Name of what is fenced, for the record.
            cost: Name under which its time is recorded; empty for not timed.
            into: Internal.
        """
        begin, outer, self._inside = self._clock(), self._inside, 0.0
        try:
            yield
        except Exception as error:  # the one fence: a monitor never kills a training run
            if self._strict:
                raise
            self._count(f"{part}: {type(error).__name__}", error, into)
        finally:
            spent, inside = (self._clock() - begin) * 1e3, self._inside
            self._inside = outer + (spent if cost else inside)
            if cost:  # what is fenced inside has its own cost
                (into or self._pending).cost_ms[cost] += spent - inside  # type: ignore[assignment]

    def _count(self, what: str, error: Exception, into: Pending | None) -> None:
        (into or self._pending).faults[what] += 1
        if what not in self._named:
            self._named.add(what)
            _LOG.warning("%s (%s); counted, the training run goes on", what, error)

    def _drain(self) -> None:
        for source in self._sources:
            if isinstance(source, SpanSource):
                tables: Sequence[SpanTable] = ()
                with self.fenced(f"drain {type(source).__name__}", cost="capture"):
                    tables = source.drain()
                    self._pending.faults.update(source.faults())
                for table in tables:
                    self.observe(table)
        self._drain_gradients()

    def _drain_gradients(self) -> None:
        for source in self._gradient_sources():
            with self.fenced(f"drain {type(source).__name__}", cost="gradients"):
                self._pending.gradients.extend(source.drain_gradients())
                self._pending.faults.update(source.faults())
                # What it did inside the host's own backward pass.
                self._pending.cost_ms["gradients"] += source.cost_ms()  # type: ignore[assignment]

    def _finish(self, step: int, sums: Sums, pending: Pending, *, base: Sums) -> Decision:
        self._start(step)
        measured: dict[str, Any] = {}
        with self.fenced("summarise", into=pending):
            measured["groups"] = pending.beside(summarise({**relative(sums), **sums}))
            measured["base"] = summarise({**relative(base), **base})
        with self.fenced("checkpoints", into=pending):
            measured["checkpoints"] = self._checkpoints.news()
        record = replace(pending.record(step, _utc_now()), **measured)
        alerts: list[Alert] = []
        changed, notices = tuple[Incident, ...](), tuple[Notice, ...]()
        if self._parts.judge is not None:
            with self.fenced("judge", cost="judge"):
                self._texts.keep(pending.samples)
                self._judged += 1
                alerts = [self._shown(alert, record) for alert in self._parts.judge.update(record)]
                changed = self._parts.judge.changed
                notices = self._notices.update(changed, alerts)
        if self._parts.pulse is not None:
            with self.fenced("pulse"):
                self._parts.pulse.beat(record.step)
        for sink in self._parts.sinks:
            with self.fenced("write", cost="write"):
                sink.write_step(record)
            if pending.samples:
                with self.fenced("write samples", cost="texts"):
                    sink.write_samples(record.step, pending.samples)
        self._keep(alerts, changed)
        self._tell(notices)
        stops = [alert.title for alert in alerts if alert.stops and alert.state != "closed"]
        return Decision(bool(stops), tuple(alerts), stops[0] if stops else "")

    def _shown(self, alert: Alert, record: StepRecord) -> Alert:
        """The alert with its time and, unless it closes, with texts that show the finding."""
        pairs = self._texts.around(alert.role, alert.onset)
        return replace(alert, time=record.time, pairs=() if alert.state == "closed" else pairs)

    def _is_first(self) -> bool:
        reducer = self._parts.reducer
        return reducer is None or reducer.is_first()

    def _keep(self, alerts: Iterable[Alert], changed: Iterable[Incident]) -> None:
        for sink in self._parts.sinks:
            for alert in alerts:
                with self.fenced("write alert", cost="write"):
                    sink.write_alert(alert)
            for incident in changed:
                with self.fenced("write incident", cost="write"):
                    sink.write_incident(incident)

    def _tell(self, notices: Iterable[Notice]) -> None:
        for notice in notices:
            for notifier in self._parts.notifiers:
                with self.fenced(f"notify {type(notifier).__name__}", cost="notify"):
                    notifier.notify(notice, self.header)

    def _start(self, step: int) -> None:
        """Let the judge see what earlier segments of a resumed run recorded before ``step``."""
        if self._started:
            return
        self._started = True
        with self.fenced("replay of earlier segments"):
            self._judged += replay_records(self._parts, step, self._notices, self._checkpoints)
        self._keep((), self._notices.known)
        with self.fenced("texts of earlier segments"):
            replay_texts(self._parts, step, self._texts)


def _utc_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
