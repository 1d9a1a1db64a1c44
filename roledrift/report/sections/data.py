"""Section "Data and overhead": what the report is based on, its caveats, and the overhead."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import pairwise
from statistics import median

from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Block, Cell, Note, Prose, Section, Table
from roledrift.report.numbers import cell, count, number, percent

PLACE = 80


def build(run: JudgedRun) -> Section:
    """Build the section."""
    blocks: list[Block] = [_facts(run)]
    sentences = remarks(run)
    if sentences:
        blocks.append(Note("What to know before trusting the numbers:", sentences))
    labels = _labels(run)
    if labels:
        blocks.append(labels)
    blocks.extend(_cost(run))
    notes = tuple(f"{name}: {value}" for name, value in sorted(run.header.notes.items()))
    if notes:
        blocks.append(Note("What the run says of itself:", notes))
    summary = f"{len(sentences)} remark{'s' * (len(sentences) > 1)}" if sentences else "no remarks"
    return Section("data", "Data and overhead", tuple(blocks), summary)


def remarks(run: JudgedRun) -> tuple[str, ...]:
    """List all caveats about the data, one sentence each."""
    sentences = list(run.problems)
    if run.config_note:
        sentences.append(run.config_note)
    sentences += [f"no records between steps {a} and {b}" for a, b in _gaps(run)]
    sentences += [f"a later process took over at step {seam}" for seam in run.seams]
    if run.texts > len(run.counted):
        sentences.append(
            f"{len(run.counted)} of {run.texts} texts are read: the first of every step, and all "
            "at the first, the middle and the last step"
        )
    faults: Counter[str] = Counter()
    for record in run.records:
        faults.update(record.faults)
    sentences += [f"fault: {what} ({times} times)" for what, times in sorted(faults.items())]
    sentences += _missing(run)
    sentences += _refused(run)
    sentences += _disagreement(run)
    sentences += [
        f"detector {name} failed: {error}" for name, error in sorted(run.replay.faults.items())
    ]
    sentences += _odd(run, set(faults))
    return tuple(sentences)


def _gaps(run: JudgedRun) -> list[tuple[int, int]]:
    """Neighbouring records that are more than twice as far apart as usual."""
    pairs = list(pairwise(record.step for record in run.records))
    usual = median(b - a for a, b in pairs) if pairs else 1
    return [(a, b) for a, b in pairs if b - a > 2 * usual]


def _missing(run: JudgedRun) -> list[str]:
    """Columns that were not supplied: one sentence for those that are missing equally often."""
    missing = Counter(name for record in run.records for name in record.missing)
    together: dict[int, list[str]] = {}
    for name, times in missing.items():
        together.setdefault(times, []).append(name)
    total = len(run.records)
    return [
        f"{'all' if times == total else f'{times} of'} {total} records lack "
        f"{', '.join(sorted(together[times]))}"
        for times in sorted(together, reverse=True)
    ]


def _refused(run: JudgedRun) -> list[str]:
    rows: Counter[str] = Counter()
    for record in run.records:
        for role in run.roles:
            stats = record.groups.get(role, {})
            for name in stats:
                if name.endswith(".refused"):
                    rows[name.removesuffix(".refused")] += int(stats[name].n)
    return [
        f"comparison {kind!r} refused for {times} answers: its two sides are log-probabilities at "
        "different temperatures"
        for kind, times in sorted(rows.items())
    ]


def _odd(run: JudgedRun, known: set[str]) -> list[str]:
    """What an import skipped or found odd and could lay to no step; the rest are faults."""
    odd = [(name, remark) for name, remark in run.header.notes.items() if name.startswith("odd: ")]
    return [
        f"in the imported log: {what} ({remark})"
        for name, remark in sorted(odd)
        if (what := name.removeprefix("odd: ")) not in known
    ]


def _disagreement(run: JudgedRun) -> list[str]:
    live = {alert.id for alert in run.live_alerts}
    again = {alert.id for alert in run.replay.alerts}
    if live == again:
        return []
    parts = []
    if again - live:
        parts.append(f"only in the replay: {', '.join(sorted(again - live))}")
    if live - again:
        parts.append(f"only live: {', '.join(sorted(live - again))}")
    return [f"alerts recorded live and replayed now differ ({'; '.join(parts)})"]


def _facts(run: JudgedRun) -> Table:
    writers: dict[str, list[int]] = {}
    for record in run.records:
        writers.setdefault(record.writer or "unnamed", []).append(record.step)
    rows = [
        (Cell(writer), count(len(steps)), count(min(steps)), count(max(steps)))
        for writer, steps in sorted(writers.items(), key=lambda item: (min(item[1]), item[0]))
    ]
    state = {
        "finished": "closed properly",
        "open": "not closed: the run crashed, was killed, or is still running",
        "empty": "empty",
    }.get(run.state, run.state)
    caption = f"The run directory is {state}. {run.texts} texts are kept."
    return Table(("writer", "records", "first step", "last step"), tuple(rows), caption=caption)


def _labels(run: JudgedRun) -> Table | None:
    seen: dict[tuple[str, str], list[int]] = {}
    for record in run.records:
        for name, value in record.labels.items():
            seen.setdefault((name, value), []).append(record.step)
    if not seen:
        return None
    rows = tuple(
        (Cell(name), Cell(value), count(len(steps)), count(min(steps)), count(max(steps)))
        for (name, value), steps in sorted(seen.items())
    )
    return Table(
        ("fact", "value", "records", "first step", "last step"),
        rows,
        title="How the statistics came about",
        collapsed=len(rows) > 12,
    )


def _cost(run: JudgedRun) -> list[Block]:
    parts: dict[str, list[float]] = {}
    for record in run.records:
        for name, spent in record.cost_ms.items():
            parts.setdefault(name, []).append(spent)
    if not parts:
        return [Note("What watching cost was not recorded.")]
    rows = tuple(
        (Cell(name), cell(median(spent)), cell(max(spent)), cell(sum(spent) / 1e3))
        for name, spent in sorted(parts.items(), key=lambda item: (-sum(item[1]), item[0]))
    )
    seconds = sum(sum(spent) for spent in parts.values()) / 1e3
    wall = _wall(run)
    text = f"Watching cost {number(seconds)} s in {len(run.records)} records"
    text += f", {percent(seconds / wall)} of {number(wall)} s of wall time." if wall else "."
    table = Table(
        ("part", "median, ms per record", "largest, ms", "total, s"), rows, title="Cost by part"
    )
    return [Prose(text), table]


def _wall(run: JudgedRun) -> float:
    """Seconds between the first and the last record of a run without seams; 0 if unknown."""
    if len(run.records) < 2 or run.seams:
        return 0.0
    try:
        first, last = (
            datetime.fromisoformat(record.time) for record in (run.records[0], run.records[-1])
        )
        return max((last - first).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0
