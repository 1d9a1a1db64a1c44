"""All detectors together: records in; verdicts, alerts and incidents out; live and in replay."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from roledrift.config import Config
from roledrift.detect.abstaining import no_verdict
from roledrift.detect.alerts import AlertManager, closed
from roledrift.detect.cards import Card, Catalogue, Context
from roledrift.detect.catalogue import all_cards, faults_of
from roledrift.detect.checking import CheckedDetector
from roledrift.detect.evidence.board import Board
from roledrift.detect.evidence.course import Course
from roledrift.detect.evidence.start import Yardsticks
from roledrift.detect.incidents import Incidents
from roledrift.detect.settings import settings_of
from roledrift.detect.suppression import suppressed
from roledrift.judgement import Alert, Incident, Verdict
from roledrift.records import RunHeader, StepRecord
from roledrift.sums import EVERYONE
from roledrift.workflow import Workflow

Series = Mapping[tuple[str, str], list[tuple[int, float, float | None]]]
"""``(detector, role)`` -> ``(step, value, threshold)`` of every verdict that had a value."""

_SNAPSHOT_EVERY = 16
_SNAPSHOTS = 8


@dataclass(slots=True)
class _State:
    """Everything that changes from record to record."""

    board: Board
    course: Course
    detectors: tuple[CheckedDetector, ...]
    alerts: AlertManager
    incidents: Incidents
    verdicts: dict[tuple[str, str], Verdict]
    assumed: set[tuple[str, str]]
    last: int | None = None


class DetectorSuite:
    """Runs every detector on every record, and keeps their alerts and incidents.

    A detector that fails is named in ``faults`` and gives no verdict; the others go on.

    Records come in the order of steps. A step that was judged before means that the run was taken
    back to a checkpoint: what was concluded from the steps that no longer count is undone (alerts
    that rest on it close), exactly for the last 128 records; a run taken back further starts over.

    Args:
        workflow: Roles, slots, policies.
        config: False-alert budget, start, detectors' sections, alert lifecycle.
        detectors: Cards to judge by instead of those that ship and those that are installed.
        reference: Records of another, healthy run of this workflow whose start is this run's.
        yardsticks: Starts of earlier runs, which this run's start is held against.
        rewinds: False for records whose steps are known to rise: nothing is kept to go back to.
        host: Trainer that is watched, for the advice.
    """

    def __init__(
        self,
        workflow: Workflow,
        config: Config | None = None,
        *,
        detectors: Sequence[Card] | None = None,
        reference: Iterable[StepRecord] = (),
        yardsticks: Yardsticks | None = None,
        rewinds: bool = True,
        host: str = "",
    ) -> None:
        config = config or Config()
        start, config = _start_of(reference, config)
        catalogue = all_cards() if detectors is None else Catalogue(tuple(detectors))
        self.catalogue, self.config = catalogue, config
        self.faults: dict[str, str] = dict(faults_of()) if detectors is None else {}
        """Name of a detector that failed, or could not be made -> what it said the first time."""
        self._state = self._made(workflow, config, yardsticks, host)
        for record in start:
            self._look(record)
        self._start = copy.deepcopy(self._state) if rewinds else self._state
        self._snapshots: deque[_State] = deque(maxlen=_SNAPSHOTS)
        self._records: deque[StepRecord] = deque(maxlen=_SNAPSHOT_EVERY * _SNAPSHOTS)
        self._since_snapshot = 0
        self._rewinds = rewinds
        self.changed: tuple[Incident, ...] = ()
        """Incidents that the latest record changed, as they stand now; to be stored and told."""
        self.latest: Mapping[tuple[str, str], Verdict] = {}
        """The verdicts that the latest record brought, by detector and role."""

    def _made(
        self,
        workflow: Workflow,
        config: Config,
        yardsticks: Yardsticks | None,
        host: str,
    ) -> _State:
        board, course = Board(workflow, config, yardsticks), Course()
        made: list[CheckedDetector] = []
        for card in self.catalogue.cards:
            if config.findings and not any(
                finding.name in config.findings for finding in card.findings
            ):
                continue
            context = Context(workflow, config, settings_of(card, config), board, course)
            try:
                made.append(CheckedDetector(card, card.make(context), workflow))
            except Exception as error:  # somebody else's detector must not kill a run
                if not card.origin:
                    raise
                self.faults[card.name] = f"{type(error).__name__}: {error}"
        pairs = [(detector.name, role) for detector in made for role in workflow.role_names]
        verdicts = {pair: no_verdict(*pair, "no step was recorded") for pair in pairs}
        for name, fault in self.faults.items():
            verdicts[name, EVERYONE] = no_verdict(name, EVERYONE, fault)
        alerts = AlertManager(workflow, config, self.catalogue, host=host)
        return _State(board, course, tuple(made), alerts, Incidents(), verdicts, set(verdicts))

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The latest verdict per detector and role."""
        return tuple(self._state.verdicts.values())

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """The incidents as they stand; the first is the headline."""
        return self._state.incidents.incidents

    @property
    def board(self) -> Board:
        """The streams and their evidence."""
        return self._state.board

    def update(self, record: StepRecord) -> Sequence[Alert]:
        """Judge one record; transitions of alerts that it causes."""
        alerts: list[Alert] = []
        lost: tuple[Incident, ...] = ()
        if self._state.last is not None and record.step <= self._state.last:
            lost = self.incidents
            alerts += self._take_back(record.step)
        if self._rewinds:
            if not self._snapshots:  # nothing is judged yet, or the run went back to its start
                self._snapshots.append(self._start)
                self._since_snapshot = 0
            elif self._since_snapshot == _SNAPSHOT_EVERY:
                self._snapshots.append(copy.deepcopy(self._state))
                self._since_snapshot = 0
            self._records.append(record)
            self._since_snapshot += 1
        alerts += self._judge(record)
        changed = self._tell(record.step, alerts)
        self.changed = _differing(lost, self.incidents, record.step) if lost else changed
        return alerts

    def _tell(self, step: int, alerts: Sequence[Alert]) -> tuple[Incident, ...]:
        """The incidents that the alerts of one step change."""
        self._state.incidents.damage = self._state.course.damage
        return self._state.incidents.update(step, alerts)

    def _look(self, record: StepRecord) -> list[Verdict]:
        """What the detectors think of one record."""
        state = self._state
        state.board.observe(record)
        state.course.observe(record)
        return [
            verdict
            for detector in state.detectors
            for verdict in self._verdicts_of(detector, record)
        ]

    def _judge(self, record: StepRecord) -> list[Alert]:
        state = self._state
        state.alerts.note(record.checkpoints)
        verdicts = suppressed(self._look(record), self.catalogue)
        self.latest = {(verdict.detector, verdict.role): verdict for verdict in verdicts}
        state.verdicts |= self.latest
        state.last = record.step
        observe, step = state.alerts.observe, record.step
        return [alert for verdict in verdicts if (alert := observe(step, verdict)) is not None]

    def _verdicts_of(self, detector: CheckedDetector, record: StepRecord) -> Sequence[Verdict]:
        state, name = self._state, detector.name
        try:
            verdicts = detector.update(record)
        except Exception as error:  # one broken detector must not silence the others
            fault = f"{type(error).__name__}: {error}"
            self.faults.setdefault(name, fault)
            roles = [role for owner, role in state.verdicts if owner == name] or [EVERYONE]
            state.assumed |= {(name, role) for role in roles}
            reason = f"the detector failed in step {record.step} ({fault})"
            return [no_verdict(name, role, reason) for role in roles]
        if verdicts and state.assumed:
            for key in [key for key in state.assumed if key[0] == name]:
                # The suite said something for every role; the detector may judge fewer of them.
                state.assumed.discard(key)
                del state.verdicts[key]
        return verdicts

    def _take_back(self, step: int) -> list[Alert]:
        """Go back to the state before ``step``."""
        before = self._state.alerts.open
        at = self._state.last if self._state.last is not None else step
        while self._snapshots and not _earlier(self._snapshots[-1], step):
            self._snapshots.pop()
        kept = [record for record in self._records if record.step < step]
        if self._snapshots:
            self._state = copy.deepcopy(self._snapshots[-1])
        else:
            self._state, kept = copy.deepcopy(self._start), []
        again = [r for r in kept if self._state.last is None or r.step > self._state.last]
        for record in again:
            self._tell(record.step, self._judge(record))
        self._records = deque(kept, maxlen=self._records.maxlen)
        self._since_snapshot = len(again)
        gone = before.keys() - self._state.alerts.open.keys()
        why = f"the run went back from step {at} to step {step}"
        return [closed(alert, step, why) for id_, alert in before.items() if id_ in gone]


def _differing(
    lost: Sequence[Incident], now: Sequence[Incident], step: int
) -> tuple[Incident, ...]:
    """Incidents that differ after a run went back, and those that are gone, closed."""
    before = {incident.id: incident for incident in lost}
    went = f"The run went back to step {step}."
    gone = [
        replace(incident, step=step, state="closed", sentence=f"{incident.sentence} {went}")
        for incident in lost
        if incident.state == "open" and incident.id not in {other.id for other in now}
    ]
    return (*gone, *(incident for incident in now if before.get(incident.id) != incident))


def _start_of(reference: Iterable[StepRecord], config: Config) -> tuple[list[StepRecord], Config]:
    """The records of a reference run that are the start, and the configuration with them."""
    by_step = {record.step: record for record in reference}
    start = [by_step[step] for step in sorted(by_step)][: config.baseline.window]
    if not start:
        return [], config
    baseline = replace(config.baseline, window=len(start))
    return start, replace(config, baseline=baseline)


def _earlier(snapshot: _State, step: int) -> bool:
    return snapshot.last is None or snapshot.last < step


@dataclass(frozen=True)
class Replay:
    """What the suite says about a finished run.

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
    yardsticks: Yardsticks | None = None,
    host: str = "",
) -> Replay:
    """Judge stored records as if they came in live; the same data gives the same alert ids.

    Args:
        records: Records in any order; of several with one step the last one counts.
        workflow: Roles, slots, policies.
        config: As for :class:`DetectorSuite`; it may differ from the live run's.
        reference: As for :class:`DetectorSuite`.
        yardsticks: As for :class:`DetectorSuite`.
        host: As for :class:`DetectorSuite`.
    """
    suite = DetectorSuite(
        workflow, config, reference=reference, yardsticks=yardsticks, rewinds=False, host=host
    )
    by_step = {record.step: record for record in records}
    alerts: list[Alert] = []
    series: dict[tuple[str, str], list[tuple[int, float, float | None]]] = {}
    last: dict[tuple[str, str], Verdict] = {}
    for step in sorted(by_step):
        record = by_step[step]
        alerts += [replace(alert, time=record.time) for alert in suite.update(record)]
        for key, verdict in suite.latest.items():
            if verdict.value is not None and last.get(key) is not verdict:
                series.setdefault(key, []).append((step, verdict.value, verdict.threshold))
            last[key] = verdict
    return Replay(suite.verdicts, tuple(alerts), series, dict(suite.faults), suite.incidents)


def replay_run(
    header: RunHeader,
    records: Iterable[StepRecord],
    config: Config | None = None,
    *,
    reference: Iterable[StepRecord] = (),
) -> Replay:
    """Judge a stored run by all that its header knows: workflow, host, starts of earlier runs."""
    return replay(
        records,
        header.workflow,
        config,
        reference=reference,
        yardsticks=header.yardsticks,
        host=header.host,
    )
