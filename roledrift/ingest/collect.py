"""Spans and series to step records, with a bounded amount of text and rows in memory.

Texts are measured and let go of in portions; what remains of a span until its step is done is a row
of numbers. Sums add up, so the portions do not show in the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isfinite

from roledrift.config import SamplingConfig
from roledrift.errors import StoreError
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.roles import MAX_ROLES, MAX_SLOTS
from roledrift.ingest.rows import Event, Series, SpanRow
from roledrift.ingest.tables import shares_of, stacked, tables_of
from roledrift.measure.catalogue import probes_for
from roledrift.measure.installed import InstalledProbes
from roledrift.measure.milestones import ONE_OF_THE_FIRST, PROBLEMS
from roledrift.measure.sampling import TextSampler
from roledrift.records import LENGTH_UNIT, Sample, Stats, StepRecord, StoredStats, summarise
from roledrift.spans import SpanTable
from roledrift.sums import EVERYONE, Sums, add
from roledrift.workflow import SINGLE

_TEXT_BUDGET = 24 * 2**20
_ROW_BUDGET = 400_000
_TEXT = "text_N"
_FINITE = ("reward", "advantage", "nll", "entropy")
_SOURCE = {"source": "foreign"}


@dataclass(slots=True)
class _Step:
    unmeasured: list[SpanRow] = field(default_factory=list)
    kept: list[SpanTable] = field(default_factory=list)
    rows: int = 0
    folded: bool = False
    sums: Sums = field(default_factory=dict)
    picked: list[tuple[SpanRow, tuple[str, ...]]] = field(default_factory=list)
    problems: dict[str, str | None] = field(default_factory=dict)
    of_problems: dict[int, None] = field(default_factory=dict)
    places: set[tuple[object, ...]] = field(default_factory=set)
    groups: dict[str, dict[str, float]] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Tally:
    """What was seen: for the header and for the user.

    Attributes:
        slots: Slots by role, in the order of first appearance.
        columns: Number of spans that had each column.
        held: Statistics that some role had, and totals.
        validation: Step to accuracy.
        with_texts: Steps of which texts were kept.
        logged_length: Whether the source itself says how long all roles' outputs are.
        together: Statistics of all roles together.
    """

    slots: dict[str, int] = field(default_factory=dict)
    spans: int = 0
    steps: int = 0
    first: int = 0
    last: int = 0
    columns: Counter[str] = field(default_factory=Counter)
    held: set[str] = field(default_factory=set)
    together: set[str] = field(default_factory=set)
    validation: dict[int, float] = field(default_factory=dict)
    with_texts: list[int] = field(default_factory=list)
    logged_length: bool = False

    @property
    def in_characters(self) -> bool:
        """Whether lengths are in characters: there are texts, and nobody counted their tokens."""
        return self.columns["text"] > 0 and not self.columns["tokens"] and "length" not in self.held


class Collector:
    """Takes what a reader yields and gives finished steps.

    Args:
        ledger: Where rows without a place are counted.
        count: Number of tokens in a text, for sources that do not say; None leaves them unknown.
    """

    def __init__(
        self,
        ledger: Ledger,
        count: Callable[[str], int] | None = None,
    ) -> None:
        self.tally = Tally()
        self._count = count
        self._ledger = ledger
        self._sampler = TextSampler(SamplingConfig())
        self._open: dict[int, _Step] = {}
        self._closed: set[int] = set()
        self._text = 0
        self._rows = 0
        probes = probes_for("business", SINGLE)
        self._of_text = [probe for probe in probes if _TEXT in probe.needs]
        self._of_numbers = [probe for probe in probes if _TEXT not in probe.needs]
        self._of_others = InstalledProbes()

    def take(self, event: Event) -> Iterator[tuple[StepRecord, list[Sample]]]:
        """Take one event; gives the step that it finishes, if any."""
        if isinstance(event, SpanRow):
            self._span(event)
        elif isinstance(event, Series):
            self._series(event)
        elif event.step in self._open:
            yield self._close(event.step)

    def finish(self) -> Iterator[tuple[StepRecord, list[Sample]]]:
        """The steps that nobody closed, in order."""
        for step in sorted(self._open):
            yield self._close(step)

    def _step(self, step: int) -> _Step | None:
        if step in self._closed:
            self._ledger.skip("record of a step that was finished already", f"step {step}")
            return None
        return self._open.setdefault(step, _Step())

    def _role(self, role: str, slot: int | None) -> None:
        slots = self.tally.slots
        if role not in slots and len(slots) >= MAX_ROLES:
            raise StoreError(
                f"more than {MAX_ROLES} roles, the last is {role!r}: name the right column in the "
                "mapping, or map the names with --roles"
            )
        slots[role] = max(slots.get(role, 1), (slot or 0) + 1)

    def _span(self, row: SpanRow) -> None:
        state = self._step(row.step)
        if state is None:
            return
        if row.slot is not None and not 0 <= row.slot < MAX_SLOTS:
            self._ledger.skip("slot number out of range", f"slot {row.slot}", step=row.step)
            row.slot = None
        for name in _FINITE:
            value = getattr(row, name)
            if value is not None and not isfinite(value):
                self._ledger.skip(f"{name} that is not finite", f"step {row.step}", step=row.step)
                setattr(row, name, None)
        if row.tokens is None and row.text is not None and self._count is not None:
            row.tokens = self._count(row.text)
        self._role(row.role, row.slot)
        self.tally.spans += 1
        if state.folded:
            # An advantage group that lies on both sides is counted as two in zero_variance.
            self._ledger.skip("step measured in portions", f"step {row.step}", step=row.step)
            state.folded = False
        state.unmeasured.append(row)
        state.rows += 1
        self._rows += 1
        self._text += len(row.text or "") + len(row.prompt_text)
        if self._text > _TEXT_BUDGET:
            for step in self._open:
                self._digest(step)
            self._text = 0
        if self._rows > _ROW_BUDGET:
            self._relieve(row.step, state)

    def _relieve(self, step: int, state: _Step) -> None:
        """Measure what can be done with: in sorted input, every step but the present one."""
        for other in self._open:
            if other != step or state.rows > _ROW_BUDGET:
                self._fold(other)
        self._rows = state.rows

    def _series(self, series: Series) -> None:
        state = self._step(series.step)
        if state is None:
            return
        for group, stats in series.groups.items():
            if group != EVERYONE:
                self._role(group.partition("/")[0], None)
            elif "length" in stats:
                self.tally.logged_length = True
            state.groups.setdefault(group, {}).update(stats)
            for name in (name for name, value in stats.items() if not isfinite(value)):
                self._ledger.skip(
                    f"logged {name} that is not finite", f"step {series.step}", step=series.step
                )
        state.totals.update(series.totals)
        state.labels.update(series.labels)

    def _digest(self, step: int) -> None:
        """Measure the texts that have come in, pick those to keep, and let go of the rest."""
        state = self._open[step]
        if not state.unmeasured:
            return
        self._pick(step, state)
        self.tally.columns.update(_columns(state.unmeasured))
        state.sums = add([state.sums, *(shares_of(state.unmeasured))])
        for table in tables_of(state.unmeasured, tuple(self.tally.slots)):
            state.present |= table.present
            state.sums = add(
                [state.sums]
                + [probe.measure(table) for probe in self._of_text if probe.needs <= table.present]
                + self._of_others.measure(table, self.tally.slots, texts=True)
            )
            state.missing |= {
                name for probe in self._of_text for name in probe.needs - table.present
            }
            state.kept.append(replace(table, text_N=None))
        state.unmeasured = []

    def _fold(self, step: int) -> None:
        """Measure the numbers of the rows that are kept."""
        self._digest(step)
        state = self._open[step]
        for table in stacked(state.kept, tuple(self.tally.slots)):
            for probe in self._of_numbers:
                lacking = probe.needs - table.present
                state.missing |= lacking
                if not lacking:
                    state.sums = add([state.sums, probe.measure(table)])
            theirs = self._of_others.measure(table, self.tally.slots, texts=False)
            state.sums = add([state.sums, *theirs])
        state.kept = []
        state.folded, state.rows = state.rows > 0 or state.folded, 0

    def _pick(self, step: int, state: _Step) -> None:
        # What an earlier portion of the step kept stands beside the new rows for election.
        rows = [row for row, _ in state.picked] + [row for row in state.unmeasured if row.text]
        if not rows:
            return
        for row in state.unmeasured:
            if row.text and _of_first_problems(row, state):
                state.of_problems[id(row)] = None
        picks = self._sampler.pick(
            step,
            [row.role for row in rows],
            tokens=[row.tokens or len(row.text or "") for row in rows],
            prompts=[row.prompt or "" for row in rows],
            episodes=[row.episode or "" for row in rows],
        )
        flags = {pick.row: pick.flags for pick in picks}
        for number, row in enumerate(rows):
            if id(row) in state.of_problems:
                flags[number] = (*flags.get(number, ()), ONE_OF_THE_FIRST)
        state.picked = [(rows[number], flags[number]) for number in sorted(flags)]

    def _close(self, step: int) -> tuple[StepRecord, list[Sample]]:
        self._fold(step)
        state = self._open.pop(step)
        self._closed.add(step)
        groups: dict[str, Stats] = dict(summarise(state.sums))
        for group, stats in state.groups.items():
            measured_here = groups.get(group, {})
            # What was measured on spans here is better founded than a logged mean.
            logged = StoredStats(
                {name: {"n": 1, "mean": stats[name]} for name in stats if name not in measured_here}
            )
            groups[group] = {**measured_here, **logged} if measured_here else logged
        tally = self.tally
        tally.first = step if not tally.steps else min(tally.first, step)
        tally.last = step if not tally.steps else max(tally.last, step)
        tally.steps += 1
        tally.held.update(state.totals)
        if "val_accuracy" in state.totals:
            tally.validation[step] = state.totals["val_accuracy"]
        tally.with_texts += [step] if state.picked else []
        for group, measured in groups.items():
            (tally.together if group == EVERYONE else tally.held).update(measured)
        record = StepRecord(
            step=step,
            groups=groups,
            time=_time(state.totals.pop("clock", None)),
            totals=state.totals,
            missing=tuple(sorted(state.missing - state.present)),
            faults=self._ledger.of_step(step),
            labels=_SOURCE | state.labels,
        )
        return record, [_sample(row, flags) for row, flags in state.picked]


def _time(clock: float | None) -> str:
    """When a step was logged, ISO 8601; empty if the log does not say."""
    if clock is None or not isfinite(clock):
        return ""
    return datetime.fromtimestamp(clock, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _of_first_problems(row: SpanRow, state: _Step) -> bool:
    """Whether a row is of the first rollout of one of the first problems of its step."""
    if row.prompt is None:
        return False
    if row.prompt not in state.problems:
        if len(state.problems) >= PROBLEMS:
            return False
        state.problems[row.prompt] = row.episode
    if row.episode is not None:
        return state.problems[row.prompt] == row.episode
    place = (row.prompt, row.role, row.slot, row.turn)
    known = place in state.places
    state.places.add(place)
    return not known


def in_characters(record: StepRecord, *, everyone: bool) -> StepRecord:
    """``record`` with lengths in characters, labelled so.

    Args:
        record: A step of a source that has texts and no token counts.
        everyone: Also for all roles together; not where the source itself logs their tokens.
    """
    groups = {
        group: {**stats, "length": stats["chars"]}
        if "chars" in stats and "length" not in stats and (everyone or group != EVERYONE)
        else stats
        for group, stats in record.groups.items()
    }
    return replace(record, groups=groups, labels={**record.labels, LENGTH_UNIT: "characters"})


def without_single_slots(record: StepRecord, slots: Mapping[str, int]) -> StepRecord:
    """``record`` without the groups ``role/0`` of roles that turned out to have one slot."""
    if not any("/" in group for group in record.groups):
        return record
    groups = {
        group: stats
        for group, stats in record.groups.items()
        if "/" not in group or slots.get(group.partition("/")[0], 1) > 1
    }
    return replace(record, groups=groups)


def of_the_only_role(record: StepRecord, role: str) -> StepRecord:
    """``record`` of a run of one role: what is of all roles together is that role's."""
    everyone = record.groups.get(EVERYONE)
    if not everyone:
        return record
    own = record.groups.get(role)
    own = {**everyone, **own} if own else everyone
    return replace(record, groups={**record.groups, role: own})


def _columns(rows: list[SpanRow]) -> Counter[str]:
    columns: Counter[str] = Counter()
    for name in ("text", "tokens", "truncated", "reward", "advantage", "group", "nll", "entropy"):
        columns[name] = sum(getattr(row, name) is not None for row in rows)
    for row in rows:
        columns.update(pair.kind for pair in row.pairs)
        columns.update(row.shares.keys())  # of the mapping itself a Counter would add the values
    return columns


def _sample(row: SpanRow, flags: tuple[str, ...]) -> Sample:
    unknown = float("nan")
    finish = "unknown" if row.truncated is None else ("length" if row.truncated else "stop")
    return Sample(
        step=row.step,
        role=row.role,
        text=row.text or "",
        slot=row.slot or 0,
        turn=row.turn or 0,
        prompt=row.prompt or "",
        episode=row.episode or "",
        prompt_text=row.prompt_text,
        tokens=row.tokens or 0,
        finish=finish,  # type: ignore[arg-type]
        reward=unknown if row.reward is None else row.reward,
        advantage=unknown if row.advantage is None else row.advantage,
        flags=flags,
    )
