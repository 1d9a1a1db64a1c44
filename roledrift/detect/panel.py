"""All detectors together: records in, verdicts and alerts out; live and replayed alike."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from roledrift.config import Config
from roledrift.detect import DETECTORS
from roledrift.detect.alerts import AlertBook, closed
from roledrift.detect.gate import gated, reads_of, suspects
from roledrift.detect.hygiene import NAME as HYGIENE
from roledrift.detect.incidents import Incidents
from roledrift.detect.installed import installed_detectors
from roledrift.protocols import Detector
from roledrift.records import Alert, Incident, StepRecord, Verdict
from roledrift.sums import EVERYONE
from roledrift.workflow import Workflow

Series = Mapping[tuple[str, str], list[tuple[int, float, float | None]]]
"""``(detector, role)`` -> ``(step, value, threshold)`` of every verdict that had a value."""

_SNAPSHOT_EVERY = 16
_SNAPSHOTS = 8


@dataclass(slots=True)
class _Judgement:
    """Everything that changes from record to record."""

    detectors: tuple[Detector, ...]
    book: AlertBook
    verdicts: dict[tuple[str, str], Verdict]
    assumed: set[tuple[str, str]]
    last: int | None = None


class Panel:
    """Runs every enabled detector on every record and keeps their alerts.

    A detector that fails is named in ``faults`` and gives no verdict; the others go on.

    Records come in the order of steps. A step that was judged before means that the run was taken
    back to a checkpoint: what was concluded from the steps that no longer count is undone (alerts
    that rest on it close), exactly for the last 128 records; a run taken back further starts over.

    Args:
        workflow: Roles, slots, policies.
        config: Sections of the detectors, baseline, alert lifecycle.
        detectors: Detectors to run instead of the enabled ones of :data:`DETECTORS`.
        reference: Records of another, healthy run of this workflow whose start is the baseline,
            instead of this run's own.
        rewinds: False for records whose steps are known to rise: nothing is kept to go back to.
        host: Trainer that is watched, so that the advice can name its settings.

    Raises:
        ConfigError: If a detector's section does not fit the workflow.
    """

    def __init__(
        self,
        workflow: Workflow,
        config: Config | None = None,
        *,
        detectors: Sequence[Detector] | None = None,
        reference: Iterable[StepRecord] = (),
        rewinds: bool = True,
        host: str = "",
    ) -> None:
        start, config = _start_of(reference, config or Config())
        self.faults: dict[str, str] = {}
        """Name of a detector that failed, or could not be made -> what it said the first time."""
        if detectors is None:
            brought, self.faults = installed_detectors(workflow, config, shipped=DETECTORS)
            shipped = [
                make(workflow, config) for name, make in DETECTORS.items() if _enabled(config, name)
            ]
            detectors = [*shipped, *brought]
        untold = {
            (one.name, role): Verdict(one.name, role, "no verdict", reason="no step was recorded")
            for one in detectors
            for role in workflow.role_names
        } | {
            (name, EVERYONE): Verdict(name, EVERYONE, "no verdict", reason=said)
            for name, said in self.faults.items()
        }
        book = AlertBook(workflow, config, host=host)
        self._now = _Judgement(tuple(detectors), book, untold, set(untold))
        for record in start:
            for detector in self._now.detectors:
                self._verdicts_of(detector, record)
        self._start = copy.deepcopy(self._now)
        self._snapshots: deque[_Judgement] = deque(maxlen=_SNAPSHOTS)
        self._records: deque[StepRecord] = deque(maxlen=_SNAPSHOT_EVERY * _SNAPSHOTS)
        self._since_snapshot = 0
        self._rewinds = rewinds
        self._incidents = Incidents()
        self.changed: tuple[Incident, ...] = ()
        """Incidents that the latest record changed, as they stand now; to be stored and told."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The latest verdict per detector and role."""
        return tuple(self._now.verdicts.values())

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """The incidents as they stand; the first is the headline."""
        return self._incidents.incidents

    def update(self, record: StepRecord) -> Sequence[Alert]:
        """Judge one record; transitions of alerts that it causes."""
        alerts = self._update(record)
        self.changed = self._incidents.update(record.step, alerts)
        return alerts

    def _update(self, record: StepRecord) -> Sequence[Alert]:
        alerts: list[Alert] = []
        if self._now.last is not None and record.step <= self._now.last:
            alerts += self._take_back(record.step)
        if not self._rewinds:
            return alerts + self._judge(record)
        if not self._snapshots or self._since_snapshot == _SNAPSHOT_EVERY:
            self._snapshots.append(copy.deepcopy(self._now))
            self._since_snapshot = 0
        self._records.append(record)
        self._since_snapshot += 1
        return alerts + self._judge(record)

    def _judge(self, record: StepRecord) -> list[Alert]:
        now = self._now
        now.book.note(record.checkpoints)
        alerts = []
        suspect: dict[str, Verdict] = {}
        for detector in now.detectors:
            told = self._verdicts_of(detector, record)
            # Hygiene is the first of the detectors: what it finds is known to those after it.
            if detector.name == HYGIENE:
                suspect = suspects(told)
            elif suspect:
                reads = reads_of(detector)
                told = [gated(one, reads, suspect) for one in told]
            for verdict in told:
                now.verdicts[verdict.detector, verdict.role] = verdict
                alert = now.book.see(record.step, verdict)
                if alert is not None:
                    alerts.append(alert)
        now.last = record.step
        return alerts

    def _verdicts_of(self, detector: Detector, record: StepRecord) -> Sequence[Verdict]:
        now, name = self._now, detector.name
        try:
            verdicts = detector.update(record)
        except Exception as error:  # one broken detector must not silence the others
            said = f"{type(error).__name__}: {error}"
            self.faults.setdefault(name, said)
            roles = [role for its, role in now.verdicts if its == name] or [EVERYONE]
            now.assumed |= {(name, role) for role in roles}
            reason = f"the detector failed in step {record.step} ({said})"
            return [Verdict(name, role, "no verdict", reason=reason) for role in roles]
        for key in [key for key in now.assumed if key[0] == name] if now.assumed else ():
            # The panel said something for every role; the detector may watch fewer of them.
            now.assumed.discard(key)
            del now.verdicts[key]
        return verdicts

    def _take_back(self, step: int) -> list[Alert]:
        """Go back to the state before ``step``."""
        before = self._now.book.open
        at = self._now.last if self._now.last is not None else step
        while self._snapshots and not _earlier(self._snapshots[-1], step):
            self._snapshots.pop()
        kept = [record for record in self._records if record.step < step]
        if self._snapshots:
            self._now = copy.deepcopy(self._snapshots[-1])
        else:
            self._now, kept = copy.deepcopy(self._start), []
        again = [r for r in kept if self._now.last is None or r.step > self._now.last]
        for record in again:
            self._judge(record)
        self._records = deque(kept, maxlen=self._records.maxlen)
        self._since_snapshot = len(again)
        gone = before.keys() - self._now.book.open.keys()
        why = f"the run went back from step {at} to step {step}"
        return [closed(alert, step, why) for id_, alert in before.items() if id_ in gone]


def _start_of(reference: Iterable[StepRecord], config: Config) -> tuple[list[StepRecord], Config]:
    """The records of a reference run that are the baseline, and the configuration with them."""
    by_step = {record.step: record for record in reference}
    first = config.baseline.skip
    start = [by_step[step] for step in sorted(by_step)][first : first + config.baseline.window]
    if not start:
        return [], config
    baseline = replace(config.baseline, skip=0, window=len(start))
    return start, replace(config, baseline=baseline)


def _earlier(snapshot: _Judgement, step: int) -> bool:
    return snapshot.last is None or snapshot.last < step


def _enabled(config: Config, name: str) -> bool:
    section = getattr(config.detectors, name, None)
    return bool(getattr(section, "enabled", True))


@dataclass(frozen=True)
class Replay:
    """What the panel says about a finished run.

    Attributes:
        verdicts: The last verdict per detector and role.
        alerts: All transitions, in order.
        series: For figures: what each detector judged, step by step.
        faults: Detectors that failed, with what they said.
        incidents: As they stand in the end; the first is the headline.
    """

    verdicts: tuple[Verdict, ...]
    alerts: tuple[Alert, ...]
    series: Series
    faults: Mapping[str, str]
    incidents: tuple[Incident, ...] = ()


def replay(
    records: Iterable[StepRecord],
    workflow: Workflow,
    config: Config | None = None,
    *,
    reference: Iterable[StepRecord] = (),
    host: str = "",
) -> Replay:
    """Judge stored records as if they came in live; the same data gives the same alert ids.

    Args:
        records: Records in any order; of several with one step the last one counts.
        workflow: Roles, slots, policies.
        config: As for :class:`Panel`; thresholds may differ from the live run's.
        reference: As for :class:`Panel`.
        host: As for :class:`Panel`.
    """
    panel = Panel(workflow, config, reference=reference, rewinds=False, host=host)
    by_step = {record.step: record for record in records}
    alerts: list[Alert] = []
    series: dict[tuple[str, str], list[tuple[int, float, float | None]]] = {}
    told: dict[tuple[str, str], Verdict] = {}
    for step in sorted(by_step):
        record = by_step[step]
        alerts += [replace(one, time=record.time) for one in panel.update(record)]
        for verdict in panel.verdicts:
            key = (verdict.detector, verdict.role)
            if verdict.value is not None and told.get(key) is not verdict:
                series.setdefault(key, []).append((step, verdict.value, verdict.threshold))
            told[key] = verdict
    return Replay(panel.verdicts, tuple(alerts), series, dict(panel.faults), panel.incidents)
