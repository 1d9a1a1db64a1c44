"""TensorBoard's event files, read with TensorBoard's own reader if it is installed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from roledrift.errors import StoreError
from roledrift.ingest import gaps
from roledrift.ingest.form import Format, Job
from roledrift.ingest.history import History
from roledrift.ingest.rows import Events

_NAME = "events.out.tfevents."


def _sniff(path: Path) -> str | None:
    files = _files(path)
    return f"{len(files)} TensorBoard event file(s)" if files else None


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if _NAME in path.name else []
    own = sorted(file for file in path.glob(f"*{_NAME}*") if file.is_file())
    # transformers keeps them in runs/<date>; other folders may hold other runs.
    runs = path / "runs"
    return own or sorted(file for file in runs.glob(f"*/*{_NAME}*") if file.is_file())


def _read(job: Job) -> Events:
    loader = _loader()
    history = History(job)
    for file in _files(job.source):
        rows: dict[int, dict[str, object]] = {}
        order: list[int] = []
        for event in loader(str(file)).Load():
            for value in event.summary.value:
                number = _scalar(value)
                if number is None:
                    continue
                if not order or order[-1] != event.step or value.tag in rows[event.step]:
                    if event.step in rows:
                        _flush(rows, order, history, file)
                    rows[event.step] = {}
                    order.append(event.step)
                rows[event.step] |= {value.tag: number, "_timestamp": event.wall_time}
        _flush(rows, order, history, file)
    yield from history.events()


def _flush(
    rows: dict[int, dict[str, object]], order: list[int], history: History, file: Path
) -> None:
    for step in order:
        history.add(step, rows[step], file.name)
    rows.clear()
    order.clear()


def _loader() -> Any:
    try:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    except ImportError as error:
        raise StoreError(
            "TensorBoard's event files are read with tensorboard, which is not installed: "
            "pip install tensorboard"
        ) from error
    return EventFileLoader


def _scalar(value: Any) -> float | None:
    """The number of a summary: a tensor of one element since TensorBoard 2, else a simple value."""
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return float(value.simple_value)
    if kind != "tensor" or value.metadata.plugin_data.plugin_name not in ("", "scalars"):
        return None
    values: Iterable[float] = [*value.tensor.float_val, *value.tensor.double_val]
    return next((float(number) for number in values), None)


FORMAT = Format(
    "tensorboard",
    "TensorBoard event files",
    _sniff,
    _read,
    {quantity.name: "log it per role, or watch the run live" for quantity in gaps.QUANTITIES},
)
