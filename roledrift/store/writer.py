"""Writing a run directory: append and flush, never rewrite."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import IO, Any

from roledrift.codec import from_json, to_json
from roledrift.errors import SchemaError, StoreError
from roledrift.judgement import Alert, Incident
from roledrift.records import SCHEMA, RunHeader, Sample, StepRecord
from roledrift.store import layout
from roledrift.store.regular import content, opened


class RunWriter:
    """Keeps one process's share of a run; a :class:`~roledrift.protocols.Sink`.

    Every process start writes files of its own, so any number of processes may write into one
    directory at the same time. A line is handed to the operating system before ``write_step``
    returns: ``kill -9`` loses at most the step being written. A lost machine may lose more, except
    alerts and incidents, which are on the disk before ``write_alert`` and ``write_incident``
    return.

    Args:
        path: Local run directory; created if needed.
        header: What the run is. For a resumed run the stored header stays.
        resume: Add to the run that is there, if there is one.
        writer: Name of this process, for example ``"trainer"``; made unique if it is taken. None
            makes one of host, process id and time.
        judged: The run is judged as it goes on. Its file of incidents is there from the start, so
            that a run without any can be told from one that nobody judged.

    Raises:
        StoreError: If a run is there and ``resume`` is false, if the stored run has other roles or
            another routing, or if the directory cannot be written.
    """

    def __init__(
        self,
        path: Path | str,
        header: RunHeader,
        *,
        resume: bool = False,
        writer: str | None = None,
        judged: bool = False,
    ) -> None:
        if layout.as_url(path) is not None:
            raise StoreError(
                f"{path}: runs are written to local directories; write locally and copy afterwards"
            )
        self.path = Path(path)
        self._seq = 0
        self._synced: dict[str, IO[bytes]] = {}
        with _writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._begin(header, resume=resume)
            base = layout.writer_name() if writer is None else layout.safe_name(writer)
            segment = _next_segment(self.path)
            self.writer, self._steps = self._claim(base)
            start = {"kind": "start", "writer": self.writer, "segment": segment, "time": _now()}
            self._append(self._steps, json.dumps({"v": SCHEMA, **start}, separators=(",", ":")))
            if judged:
                (self.path / layout.incidents_file(self.writer)).touch()

    def write_step(self, record: StepRecord) -> None:
        """Append one step, stamped with this writer's name and a running number.

        Raises:
            StoreError: If the disk is full or gone, or the writer is closed.
        """
        record = replace(record, writer=self.writer, seq=self._seq)
        self._seq += 1
        with _writing(self.path):
            self._append(self._steps, to_json(record))

    def write_alert(self, alert: Alert) -> None:
        """Append one alert and wait until it is on the disk; raises like :meth:`write_step`."""
        self._keep(layout.alerts_file(self.writer), to_json(alert))

    def write_incident(self, incident: Incident) -> None:
        """Append a state of an incident and wait until it is on the disk; the last one counts."""
        self._keep(layout.incidents_file(self.writer), to_json(incident))

    def write_samples(self, step: int, samples: Sequence[Sample]) -> None:
        """Keep the texts of one step in a file of their own; raises like :meth:`write_step`."""
        if not samples:
            return
        final = self.path / layout.samples_file(step, self.writer)
        draft = final.with_name(f".{final.name}.tmp")
        with _writing(self.path):
            final.parent.mkdir(exist_ok=True)
            _write_parquet(draft, samples)
            os.replace(draft, final)

    def close(self) -> None:
        """Mark the end and wait until everything is on the disk. Calling it again does nothing."""
        if self._steps.closed:
            return
        with _writing(self.path):
            end = {"v": SCHEMA, "kind": "end", "time": _now()}
            self._append(self._steps, json.dumps(end, separators=(",", ":")))
            for file in (self._steps, *self._synced.values()):
                os.fsync(file.fileno())
                file.close()

    def _keep(self, name: str, line: str) -> None:
        """Append a line that must survive the loss of the machine."""
        with _writing(self.path):
            if name not in self._synced:
                self._synced[name] = open(self.path / name, "ab")  # noqa: SIM115
            self._append(self._synced[name], line)
            os.fsync(self._synced[name].fileno())
            os.fsync(self._steps.fileno())

    def _begin(self, header: RunHeader, *, resume: bool) -> None:
        final = self.path / layout.HEADER
        there = final.exists() or bool(layout.writers(os.listdir(self.path), "steps"))
        if there and not resume:
            raise StoreError(
                f"{self.path}: a run is here already;"
                " give another directory, or resume=True to add to it"
            )
        if final.exists():
            _same_run(final, header)
            return
        draft = self.path / f".{layout.HEADER}.{layout.writer_name()}.tmp"
        with open(draft, "wb") as file:
            self._append(file, to_json(header))
            os.fsync(file.fileno())
        os.replace(draft, final)

    def _claim(self, base: str) -> tuple[str, IO[bytes]]:
        """A writer name nobody has, with its steps file; creating the file decides who has it."""
        for number in count(1):
            name = base if number == 1 else f"{base}-{number}"
            try:
                return name, open(self.path / layout.steps_file(name), "xb")
            except FileExistsError:
                continue
        raise AssertionError("unreachable: count() never ends")

    def _append(self, file: IO[bytes], line: str) -> None:
        if file.closed:
            raise StoreError(f"{self.path}: this writer is closed; open a new one with resume=True")
        # A lone surrogate in a model's text has no UTF-8; as an escape it is legal JSON.
        file.write(line.encode("utf-8", "backslashreplace") + b"\n")
        file.flush()


def _same_run(path: Path, header: RunHeader) -> None:
    try:
        stored = from_json(content(path, layout.MOST_OF_HEADER).decode())
    except (SchemaError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{path}: cannot resume, the header is unreadable ({error}); give another directory"
        ) from None
    if not isinstance(stored, RunHeader):
        raise StoreError(f"{path}: cannot resume, this is no run header; give another directory")
    mine, its = header.workflow, stored.workflow
    if (mine.role_names, mine.policies) != (its.role_names, its.policies):
        routes = [dict(zip(one.role_names, one.policies, strict=True)) for one in (its, mine)]
        raise StoreError(
            f"{path}: cannot resume, the stored run routes {routes[0]} and this one {routes[1]};"
            " give another directory"
        )


def _next_segment(path: Path) -> int:
    """One more than the highest number so far: a clock that needs no synchronised hosts."""
    highest = -1
    for writer in layout.writers(os.listdir(path), "steps"):
        with opened(path / layout.steps_file(writer)) as file:
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
    rows = [{name: _storable(value) for name, value in asdict(one).items()} for one in samples]
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
