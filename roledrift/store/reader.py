"""Reading a run directory, whatever state it was left in.

What can be read is read: a half-written last line costs that line, a broken line in the middle
costs that line, an unreadable file costs that file, and each is named in ``StoredRun.problems``.
Only a newer schema stops the reader: guessing at it would be worse than saying so.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

from roledrift.codec import from_plain
from roledrift.errors import SchemaError, StoreError
from roledrift.judgement import Alert, Incident
from roledrift.records import RunHeader, Sample, StepRecord
from roledrift.store import layout
from roledrift.store.decoding import decoded
from roledrift.store.header import no_header, read_header, refuse_newer
from roledrift.store.merging import Chunk, Measured, Segment, merge
from roledrift.store.writer import segment_of
from roledrift.workflow import Workflow

RunState = Literal["finished", "open", "empty"]
_HALF = "half-written last line dropped, its writer was stopped while writing"
_Kind = TypeVar("_Kind")
_Told = TypeVar("_Told", Alert, Incident)


@dataclass
class StoredRun:
    """A run directory. Files are read when they are first asked for, then kept."""

    path: Path
    header: RunHeader
    _notes: dict[str, None] = field(default_factory=dict, repr=False)
    _chunks: dict[str, Chunk] = field(default_factory=dict, repr=False)

    def reread(self) -> StoredRun:
        """The run as it is now; lines of steps that were read before are kept, not read again."""
        notes = {note: None for note in self._notes if _HALF not in note}
        return StoredRun(self.path, self.header, notes, dict(self._chunks))

    def steps(self) -> list[StepRecord]:
        """One record per step, in the order of steps, merged over writers.

        A later segment wins on the steps it replays; writers that measured different things in the
        same step are united; what nobody measured stays missing.

        Raises:
            SchemaError: If a line was written by a newer version.
        """
        return list(self._merged[0])

    def alerts(self) -> list[Alert]:
        """All transitions in order, without those of steps that a later segment replayed.

        Raises:
            SchemaError: If a line was written by a newer version.
        """
        return list(self._alerts)

    def incidents(self) -> tuple[Incident, ...]:
        """The latest recorded state of each incident; the first is the headline.

        A run that was not :attr:`judged` has none: replay it.

        Raises:
            SchemaError: If a line was written by a newer version.
        """
        return self._incidents

    def samples(
        self,
        limit: int | None = None,
        complete: Collection[int] = (),
        steps: Collection[int] | None = None,
    ) -> list[Sample]:
        """Kept texts in the order of steps, without those of replayed steps.

        Raises:
            SchemaError: If a file was written by a newer version.
        """
        files = [file for file in self._sample_files if steps is None or file[0] in steps]
        each = None if limit is None else max(1, limit // max(len(files), 1))
        return [
            sample
            for step, name in files
            for sample in self._samples_in(name, limit if step in complete else each)
        ]

    @cached_property
    def sample_count(self) -> int:
        """Number of kept texts, from the files' metadata alone."""
        from roledrift.store import texts

        total = 0
        for _, name in self._sample_files:
            # What cannot be read is named by samples(); here it only has no rows.
            with suppress(*texts.BROKEN):
                total += texts.count(layout.read(self.path / name))
        return total

    @property
    def judged(self) -> bool:
        """Whether its incidents were recorded; false for imported logs and for older runs."""
        return bool(layout.writers(layout.names(self.path), "incidents"))

    @property
    def sample_steps(self) -> tuple[int, ...]:
        """Steps with kept texts."""
        return tuple(dict.fromkeys(step for step, _ in self._sample_files))

    @cached_property
    def _sample_files(self) -> list[tuple[int, str]]:
        """Step and path of the files of texts that no later segment replaced."""
        replaced = self._merged[1]
        files = [
            (layout.sample_owner(name), name) for name in layout.names(self.path / layout.SAMPLES)
        ]
        owned = sorted((owner, name) for owner, name in files if owner is not None)
        return [
            (step, f"{layout.SAMPLES}/{name}")
            for (step, writer), name in owned
            if (writer, step) not in replaced
        ]

    @property
    def state(self) -> RunState:
        """``empty`` without steps; ``finished`` if all closed that no later writer took over."""
        if not self._merged[0]:
            return "empty"
        later: list[Measured] = []
        for segment in reversed(self.segments):
            if not later and not segment.ended:
                return "open"
            if len(self.segments) == 1:
                break
            measured = segment.measured
            taken_over = any(measured & other for other in later) or (later and not segment.records)
            if not taken_over and not segment.ended:
                return "open"
            later.append(measured)
        return "finished"

    @property
    def seams(self) -> tuple[int, ...]:
        """Steps at which a later segment took over from an earlier one."""
        if len(self.segments) < 2:
            return ()
        seams: set[int] = set()
        earlier: list[Measured] = []
        for segment in self.segments:
            measured = segment.measured
            if any(measured & other for other in earlier):
                seams.add(min(record.step for record in segment.records))
            earlier.append(measured)
        return tuple(sorted(seams))

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be read, with file and line; of texts only once ``samples`` was called."""
        _ = self._merged, self._alerts, self._incidents
        return tuple(self._notes)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """What each process start wrote, earliest first."""
        segments = [
            self._segment(name) for name in layout.writers(layout.names(self.path), "steps")
        ]
        return tuple(sorted(segments, key=lambda segment: segment.order))

    @cached_property
    def _merged(self) -> tuple[list[StepRecord], frozenset[tuple[str, int]]]:
        return merge(self.segments)

    @cached_property
    def _alerts(self) -> list[Alert]:
        alerts = self._in_order("alerts", Alert)
        return list({(alert.id, alert.state, alert.step): alert for alert in alerts}.values())

    @cached_property
    def _incidents(self) -> tuple[Incident, ...]:
        latest = {incident.id: incident for incident in self._in_order("incidents", Incident)}
        return tuple(sorted(latest.values(), key=lambda incident: incident.rank))

    def _in_order(self, kind: layout.Kind, of: type[_Told]) -> list[_Told]:
        """Records of all writers by step, then by segment; none of a step that was replayed."""
        replaced = self._merged[1]
        order = {segment.writer: rank for rank, segment in enumerate(self.segments)}
        placed = [
            (record.step, order.get(writer, -1), record)
            for writer in layout.writers(layout.names(self.path), kind)
            for body, where in self._lines(layout.lines_file(kind, writer))
            if (record := self._decoded(body, where, of)) is not None
            and (writer, record.step) not in replaced
        ]
        return [record for _, _, record in sorted(placed, key=lambda item: item[:2])]

    def _segment(self, writer: str) -> Segment:
        name = layout.lines_file("steps", writer)
        known = self._chunks.get(name, Chunk())
        lines, size, count = self._lines_after(name, known)
        if size < known.size:  # it was written anew
            known = Chunk()
        records, start, ended = list(known.records), known.start, known.ended
        for body, where in lines:
            kind = body.get("kind") if isinstance(body, dict) else None
            if kind == "start":
                start = segment_of(json.dumps(body).encode())
            elif kind == "end":
                ended = True
            else:
                record = self._decoded(body, where, StepRecord)
                if record is not None:
                    same = record.writer == writer
                    records.append(record if same else replace(record, writer=writer))
        if not lines or not lines[-1][1].endswith(f":{count + 1}"):  # else it may be half a line
            self._chunks[name] = Chunk(size, count, tuple(records), start, ended)
        if not start[1] and records:
            start = (start[0], records[0].time)
        return Segment(writer, (*start, writer), tuple(records), ended)

    def _lines(self, name: str) -> list[tuple[Any, str]]:
        """Decoded lines of a file with their place; notes what cannot be decoded."""
        return self._lines_after(name, Chunk())[0]

    def _lines_after(self, name: str, known: Chunk) -> tuple[list[tuple[Any, str]], int, int]:
        """Lines after those that are known, and the size and number of all that are whole."""
        try:
            content = layout.read(self.path / name)
        except OSError as error:
            self._note(f"{name}: cannot be read ({error.strerror or error}); left out")
            return [], 0, 0
        if len(content) < known.size:
            known = Chunk()
        lines = content[known.size :].split(b"\n")
        decoded_lines = []
        for number, line in enumerate(lines, start=known.lines + 1):
            last = number == known.lines + len(lines)
            if last and not line:
                continue
            try:
                decoded_lines.append((decoded(line), f"{name}:{number}"))
            except (ValueError, RecursionError) as error:
                broken = f"not a JSON line, left out ({error})"
                self._note(f"{name}:{number}: {_HALF if last else broken}")
        return decoded_lines, len(content) - len(lines[-1]), known.lines + len(lines) - 1

    def _decoded(self, body: Any, where: str, kind: type[_Kind]) -> _Kind | None:
        if isinstance(body, dict):
            refuse_newer(body.get("v"), f"{self.path}: {where}")
        try:
            if not isinstance(body, dict):
                raise SchemaError(f"a record is a JSON object, got {type(body).__name__}")
            record = from_plain(body)
            if not isinstance(record, kind):
                raise SchemaError(f"a {body.get('kind')} record does not belong here")
        except (SchemaError, OverflowError, RecursionError) as error:
            self._note(f"{where}: left out, {error}")
            return None
        return record

    def _samples_in(self, name: str, limit: int | None) -> list[Sample]:
        from roledrift.store import texts

        samples: list[Sample] = []
        read = 0
        try:
            rows = texts.rows(layout.read(self.path / name), f"{self.path}: {name}")
            for read, row in enumerate(islice(rows, limit), start=1):
                sample = self._decoded(row, f"{name}:{read}", Sample)
                if sample is not None:
                    samples.append(sample)
        except SchemaError:
            raise
        except texts.BROKEN as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            left = f"the rest after {read} texts is left out" if read else "left out"
            self._note(f"{name}: unreadable, {left} ({first})")
        return samples

    def _note(self, problem: str) -> None:
        self._notes[problem] = None


def open_run(path: Path | str) -> StoredRun:
    """The run in a directory.

    Raises:
        StoreError: If there is no run at ``path``, or its header cannot be read.
        SchemaError: If the run was written by a newer version.
    """
    with _looking_at(path, "be read", "`roledrift ls DIR` lists the runs in DIR") as folder:
        if layout.HEADER not in layout.names(folder):
            raise StoreError(no_header(folder))
        return StoredRun(folder, read_header(folder))


def reference_steps(path: str, workflow: Workflow) -> list[StepRecord]:
    """Records of the run that ``baseline.reference`` names; none if it names none.

    Raises:
        StoreError: If there is no run, it holds no step, or its roles are not those of
            ``workflow``.
    """
    if not path:
        return []
    run = open_run(path)
    theirs, ours = run.header.workflow.role_names, workflow.role_names
    if theirs != ours:
        raise StoreError(
            f"baseline.reference: {path} has the roles {list(theirs)}, this run {list(ours)}; "
            "name a run of the same workflow"
        )
    steps = run.steps()
    if not steps:
        raise StoreError(f"baseline.reference: {path} holds no step; name a run that has begun")
    return steps


def find_runs(path: Path | str) -> list[Path]:
    """Run directories: ``path`` itself if it is one, else all below it, sorted.

    Raises:
        StoreError: If there is no such directory.
    """
    with _looking_at(path, "be listed", "give a run directory or a folder of runs") as folder:
        return layout.runs_below(folder)


def is_run(path: Path | str) -> bool:
    """Whether ``path`` itself is a run directory; False also where there is nothing."""
    try:
        return find_runs(path) == [Path(path)]
    except StoreError:
        return False


@contextmanager
def _looking_at(path: Path | str, what: str, advice: str) -> Iterator[Path]:
    """The directory that a path names, or that of the header that it names.

    Args:
        path: As the user gave it.
        what: What cannot be done if it fails.
        advice: What to do if there is no such directory.
    """
    layout.refuse_url(path)
    path = Path(path)
    path = path.parent if path.name == layout.HEADER else path
    try:
        if not path.is_dir():
            raise StoreError(_no_directory(path, advice))
        yield path
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(
            f"{path}: cannot {what} ({error.strerror or error}); check path and permissions"
        ) from error


def _no_directory(path: Path, advice: str) -> str:
    if path.is_file():
        return (
            f"{path}: a file, not a run directory; give the directory, or make another tool's log "
            f"one with `roledrift import {path}`"
        )
    return f"{path}: no such directory; {advice}"
