"""One record per step out of what several process starts wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from roledrift.records import Stat, StepRecord

Measured = frozenset[tuple[str, str]]
"""Addresses of statistics: group and name."""


@dataclass(frozen=True, slots=True)
class Segment:
    """What one process start wrote.

    Attributes:
        writer: Name of the process start.
        order: Segments with a larger value began later.
        records: Its steps, in file order.
        ended: True if the writer was closed in good order.
    """

    writer: str
    order: tuple[int, str, str]
    records: tuple[StepRecord, ...]
    ended: bool

    @property
    def measured(self) -> Measured:
        """Addresses of everything it measured."""
        return frozenset[tuple[str, str]]().union(*(_measured(record) for record in self.records))


@dataclass(frozen=True, slots=True)
class Chunk:
    """What was read of a file of steps, so that only what is appended has to be read next.

    Attributes:
        size: Bytes of whole lines; ``lines``: their number.
        records: Its steps, in file order.
        start: Number and time of the process start; ``ended``: as for :class:`Segment`.
    """

    size: int = 0
    lines: int = 0
    records: tuple[StepRecord, ...] = ()
    start: tuple[int, str] = (0, "")
    ended: bool = False


def merge(segments: Iterable[Segment]) -> tuple[list[StepRecord], frozenset[tuple[str, int]]]:
    """One record per step from segments in the order of their start.

    A record replaces earlier records of the same step that measured any of the same things; with
    those that measured other things it is united.

    Returns:
        The records in the order of steps, and ``(writer, step)`` of those that were replaced.
    """
    segments = tuple(segments)
    if len(segments) == 1:
        alone = {record.step: record for record in segments[0].records}
        if len(alone) == len(segments[0].records):
            # What a record measured matters only where two of them meet.
            return [alone[step] for step in sorted(alone)], frozenset()
    kept: dict[int, list[tuple[StepRecord, Measured]]] = {}
    replaced: set[tuple[str, int]] = set()
    for record in (record for segment in segments for record in segment.records):
        measured = _measured(record)
        before = kept.get(record.step, [])
        gone = {kept_record.writer for kept_record, earlier in before if earlier & measured}
        replaced |= {(writer, record.step) for writer in gone}
        # What its writer added about the step afterwards is of the same training, and goes too.
        kept[record.step] = [pair for pair in before if pair[0].writer not in gone]
        kept[record.step].append((record, measured))
    merged = [_united([record for record, _ in kept[step]]) for step in sorted(kept)]
    alive = {(record.writer, step) for step, pairs in kept.items() for record, _ in pairs}
    return merged, frozenset(replaced - alive)


def _measured(record: StepRecord) -> Measured:
    addresses = {(group, name) for group, stats in record.groups.items() for name in stats}
    addresses |= {("gradients", gram.policy) for gram in record.gradients}
    # Totals such as the reward are logged by every process; they tell writers apart only if
    # nothing else does.
    return frozenset(addresses or {("totals", name) for name in record.totals})


def _united(records: Sequence[StepRecord]) -> StepRecord:
    first, *others = records
    for other in others:
        groups: dict[str, dict[str, Stat]] = {
            name: dict(stats) for name, stats in first.groups.items()
        }
        for group, stats in other.groups.items():
            groups.setdefault(group, {}).update(stats)
        first = StepRecord(
            step=first.step,
            writer="+".join(dict.fromkeys((*first.writer.split("+"), other.writer))),
            seq=max(first.seq, other.seq),
            time=max(first.time, other.time),
            groups=groups,
            totals={**first.totals, **other.totals},
            gradients=first.gradients + other.gradients,
            missing=tuple(sorted({*first.missing, *other.missing})),
            faults=dict(Counter(first.faults) + Counter(other.faults)),
            labels={**first.labels, **other.labels},
            cost_ms=dict(Counter(first.cost_ms) + Counter(other.cost_ms)),
            checkpoints=first.checkpoints or other.checkpoints,
            solved=other.solved or first.solved,
            base=first.base or other.base,
        )
    return first
