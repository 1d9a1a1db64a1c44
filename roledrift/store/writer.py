"""Writing a run directory: append and flush, never rewrite."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from roledrift.codec import from_json, to_json
from roledrift.errors import SchemaError, StoreError
from roledrift.judgement import Alert, Incident
from roledrift.records import SCHEMA, RunHeader, Sample, StepRecord
from roledrift.store import layout
from roledrift.store.lines import LineFile
from roledrift.store.regular import content, opened

LOST = "steps that could not be written"
REMOVED = "the run directory was removed while the run went on"
"""Names of faults that the writer adds to a record."""


class RunWriter:
    """Keeps one process's share of a run; a :class:`~roledrift.protocols.Sink`.

    Every process start writes files of its own, so any number of processes may write into one
    directory at the same time. A line is handed to the operating system before ``write_step``
    returns: ``kill -9`` loses at most the step being written. A lost machine may lose more, except
    alerts and incidents, which are on the disk before ``write_alert`` and ``write_incident``
    return.

    While the disk is full, lines wait in memory, up to a few megabytes, and are written once there
    is room. A directory that is removed is made again. Steps that are lost all the same are counted
    in the faults of the next record that is written.

    Args:
        path: Local run directory; created if needed.
        header: What the run is. For a resumed run the stored header stays.
        resume: Add to the run that is there, if there is one.
        overwrite: Remove the files of the run that is there, if there is one. Other files stay.
        writer: Name of this process, for example ``"trainer"``; made unique if it is taken. None
            makes one of host, process id and time.
        judged: The run is judged as it goes on. Its file of incidents is there from the start, so
            that a run without any can be told from one that nobody judged.

    Raises:
        StoreError: If a run is there and neither ``resume`` nor ``overwrite`` is set, if the stored
            run has other roles or another routing, or if the directory cannot be written.
    """

    def __init__(
        self,
        path: Path | str,
        header: RunHeader,
        *,
        resume: bool = False,
        overwrite: bool = False,
        writer: str | None = None,
        judged: bool = False,
    ) -> None:
        layout.refuse_url(path)
        self.path = Path(path)
        self._seq = 0
        self._header = header
        self._faults: Counter[str] = Counter()
        self._closed = False
        self._synced: dict[str, LineFile] = {}
        with _writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            if overwrite and resume:
                raise StoreError(
                    "resume=True continues a run and overwrite=True removes it: set one of them"
                )
            if overwrite:
                _remove(self.path)
            self._begin(header, resume=resume)
            base = layout.writer_name() if writer is None else layout.safe_name(writer)
            segment = _next_segment(self.path)
            self.writer, self._steps = self._claim(base)
            start = {"kind": "start", "writer": self.writer, "segment": segment, "time": _now()}
            self._steps.append(json.dumps({"v": SCHEMA, **start}, separators=(",", ":")))
            if judged:
                (self.path / layout.lines_file("incidents", self.writer)).touch()

    def write_step(self, record: StepRecord) -> None:
        """Append one step, stamped with this writer's name and a running number.

        Raises:
            StoreError: If the disk is full or gone (the record waits then), or the writer is
                closed.
        """
        with self._writing():
            lost, self._steps.lost = self._steps.lost, 0
            faults = record.faults
            if lost or self._faults:
                own, self._faults = +(self._faults + Counter({LOST: lost})), Counter()
                faults = {**faults, **own}
            record = replace(record, writer=self.writer, seq=self._seq, faults=faults)
            self._seq += 1
            self._steps.append(to_json(record), tells=lost)

    def write_alert(self, alert: Alert) -> None:
        """Append one alert and wait until it is on the disk; raises like :meth:`write_step`."""
        self._keep(layout.lines_file("alerts", self.writer), to_json(alert))

    def write_incident(self, incident: Incident) -> None:
        """Append a state of an incident and wait until it is on the disk; the last one counts."""
        self._keep(layout.lines_file("incidents", self.writer), to_json(incident))

    def write_samples(self, step: int, samples: Sequence[Sample]) -> None:
        """Keep the texts of one step in a file of their own; raises like :meth:`write_step`."""
        if not samples:
            return
        final = self.path / layout.samples_file(step, self.writer)
        draft = final.with_name(f".{final.name}.tmp")
        with self._writing():
            final.parent.mkdir(exist_ok=True)
            try:
                _write_parquet(draft, samples)
                os.replace(draft, final)
            except OSError:
                draft.unlink(missing_ok=True)
                raise

    def close(self) -> None:
        """Mark the end and wait until everything is on the disk. Calling it again does nothing."""
        if self._closed:
            return
        files = (self._steps, *self._synced.values())
        try:
            with self._writing():
                end = {"v": SCHEMA, "kind": "end", "time": _now()}
                self._steps.append(json.dumps(end, separators=(",", ":")))
                for file in files:
                    file.sync()
        finally:
            self._closed = True
            for file in files:
                file.close()

    def _keep(self, name: str, line: str) -> None:
        """Append a line that must survive the loss of the machine."""
        with self._writing():
            if name not in self._synced:
                self._synced[name] = LineFile(self.path / name)
            self._synced[name].append(line)
            self._synced[name].sync()
            self._steps.sync()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Around everything that is written once the run has begun."""
        if self._closed:
            raise StoreError(f"{self.path}: this writer is closed; open a new one with resume=True")
        with _writing(self.path):
            if self._steps.vanished():
                self._restore()
            yield

    def _restore(self) -> None:
        """Make the directory again that somebody has removed; a directory in its place is used."""
        with suppress(OSError):  # what cannot be made fails again, and is told, when it is written
            self.path.mkdir(parents=True, exist_ok=True)
            self._begin(self._header, resume=True)
            self._faults[REMOVED] = 1

    def _begin(self, header: RunHeader, *, resume: bool) -> None:
        final = self.path / layout.HEADER
        taken = final.exists() or bool(layout.writers(os.listdir(self.path), "steps"))
        if taken and not resume:
            raise StoreError(
                f"{self.path}: a run is here already; give another directory, overwrite=True to "
                "replace it, or resume=True to add to it"
            )
        if final.exists():
            _same_run(final, header)
            return
        draft = self.path / f".{layout.HEADER}.{layout.writer_name()}.tmp"
        with open(draft, "wb") as file:
            file.write(to_json(header).encode("utf-8", "backslashreplace") + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, final)

    def _claim(self, base: str) -> tuple[str, LineFile]:
        """A writer name nobody has, with its steps file; creating the file decides who has it."""
        for number in count(1):
            name = base if number == 1 else f"{base}-{number}"
            try:
                return name, LineFile(self.path / layout.lines_file("steps", name), new=True)
            except FileExistsError:
                continue
        raise AssertionError("unreachable: count() never ends")


def _remove(run: Path) -> None:
    """Delete the files of a run, the header last, so that what is interrupted is still a run."""
    folder = run / layout.SAMPLES
    texts = (
        [file for file in os.listdir(folder) if layout.sample_owner(file)]
        if folder.is_dir()
        else []
    )
    for file in texts:
        (folder / file).unlink()
    for file in sorted(
        layout.files_of_run(os.listdir(run)), key=lambda name: name == layout.HEADER
    ):
        (run / file).unlink()


def _same_run(path: Path, header: RunHeader) -> None:
    try:
        stored = from_json(content(path, layout.MOST_OF_HEADER).decode())
    except (SchemaError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{path}: cannot resume, the header is unreadable ({error}); give another directory"
        ) from None
    if not isinstance(stored, RunHeader):
        raise StoreError(f"{path}: cannot resume, this is not a run header; give another directory")
    ours, theirs = header.workflow, stored.workflow
    if (ours.role_names, ours.policies) != (theirs.role_names, theirs.policies):
        routes = [
            dict(zip(workflow.role_names, workflow.policies, strict=True))
            for workflow in (theirs, ours)
        ]
        raise StoreError(
            f"{path}: cannot resume, the stored run routes {routes[0]} and this one {routes[1]};"
            " give another directory"
        )


def _next_segment(path: Path) -> int:
    """One more than the highest number so far: a clock that needs no synchronised hosts."""
    highest = -1
    for writer in layout.writers(os.listdir(path), "steps"):
        with opened(path / layout.lines_file("steps", writer)) as file:
            highest = max(highest, segment_of(file.readline())[0])
    return highest + 1


def segment_of(line: bytes) -> tuple[int, str]:
    """Segment number and time in the first line of a steps file; ``(0, "")`` if it has none."""
    try:
        body = json.loads(line)
        return int(body.get("segment", 0)), str(body.get("time", ""))
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return 0, ""


def _write_parquet(path: Path, samples: Sequence[Sample]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, Any] = {
        "step": pa.int64(),
        "slot": pa.int64(),
        "turn": pa.int64(),
        "tokens": pa.int64(),
        "reward": pa.float64(),
        "advantage": pa.float64(),
        "flags": pa.list_(pa.string()),
    }
    names = list(Sample.__dataclass_fields__)
    schema = pa.schema(
        [(name, kinds.get(name, pa.string())) for name in names],
        metadata={"roledrift.schema": str(SCHEMA)},
    )
    rows = [
        {name: _storable(value) for name, value in asdict(sample).items()} for sample in samples
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, compression="zstd")


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return list(value) if isinstance(value, tuple) else value


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be written ({error.strerror or error});"
            " give a directory that this user can write to, on a disk with room"
        ) from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
