"""Send incidents and statistics to wandb, trackio, mlflow and TensorBoard.

None of them is imported here: a logbook is used only if the program has imported it and has a run
open. So a place that is not used costs a dictionary look-up, and nothing is ever set up or started
on the user's behalf.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from roledrift.errors import ConfigError
from roledrift.judgement import Incident
from roledrift.notices import Notice
from roledrift.notify import message
from roledrift.records import RunHeader

_TITLE = 64


def wandb_run() -> Any:
    """Return the open run of wandb, or None."""
    return getattr(sys.modules.get("wandb"), "run", None)


def trackio_run() -> Any:
    """Return the open run of trackio, or None."""
    current = getattr(sys.modules.get("trackio.context_vars"), "current_run", None)
    return None if current is None else current.get()


def mlflow_open() -> Any:
    """Return the module mlflow if it has an active run, else None."""
    mlflow = sys.modules.get("mlflow")
    return mlflow if mlflow is not None and mlflow.active_run() is not None else None


class WandbNotifier:
    """``run.alert`` of the open wandb run; a :class:`~roledrift.protocols.Notifier`.

    wandb passes alerts on by mail or Slack as its user has set up. Without an open run nothing
    happens. ``texts`` as for :class:`~roledrift.notify.webhook.WebhookNotifier`.
    """

    def __init__(self, *, texts: bool = False) -> None:
        self._texts = texts

    def notify(self, notice: Notice, header: RunHeader) -> None:
        """Pass one notice on under its own level: INFO, WARN and ERROR are wandb's too."""
        run = wandb_run()
        if run is not None:
            text = message.body(notice, header, texts=self._texts)
            # Each change is sent once here already: wandb need not hold repeats back.
            title = message.title(notice)[:_TITLE]
            run.alert(title, text, level=notice.level, wait_duration=0)


class TrackioNotifier:
    """``trackio.alert`` for the open trackio run; as :class:`WandbNotifier`."""

    def __init__(self, *, texts: bool = False) -> None:
        self._texts = texts

    def notify(self, notice: Notice, header: RunHeader) -> None:
        """Pass one notice on; versions of trackio without alerts are left alone."""
        run, trackio = trackio_run(), sys.modules.get("trackio")
        levels = getattr(trackio, "AlertLevel", None)
        if run is None or trackio is None or levels is None:
            return
        text = message.body(notice, header, texts=self._texts)
        title = message.title(notice)[:_TITLE]
        trackio.alert(title=title, text=text, level=levels[notice.level])


class Logbook:
    """An experiment log that takes statistics."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Log the values of a step, if a run is open."""
        raise NotImplementedError

    def incident(self, incident: Incident) -> None:
        """Log the state of an incident, unless a notifier already does."""


class WandbLog(Logbook):
    """Statistics into the open wandb run.

    A row that we commit moves wandb's step counter, and rows that the program logs under smaller
    steps would be dropped. So values join the row that the program commits next; of several steps
    in between it holds the last, and ``roledrift/step`` says which.
    """

    def __init__(self, *, rows: bool = False) -> None:
        self._rows = rows

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Log, if a run is open."""
        run = wandb_run()
        if run is not None:
            run.log({**values, "roledrift/step": step}, commit=self._rows)


class TrackioLog(Logbook):
    """Statistics into the open trackio run, as rows of their own under the step."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Log, if a run is open."""
        run = trackio_run()
        if run is not None:
            run.log(dict(values), step=step)


class MlflowLog(Logbook):
    """Statistics and incidents into the active mlflow run; incidents become tags."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Log, if a run is active."""
        mlflow = mlflow_open()
        if mlflow is not None:
            mlflow.log_metrics(dict(values), step=step)

    def incident(self, incident: Incident) -> None:
        """Set the tag ``roledrift.incident.<id>``; later states of the incident replace it."""
        mlflow = mlflow_open()
        if mlflow is not None:
            text = f"{_state(incident)} step {incident.step}: {incident.sentence}"
            mlflow.set_tag(f"roledrift.incident.{incident.id}", text)


class SummaryLog(Logbook):
    """Statistics and incidents into a TensorBoard ``SummaryWriter``."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def log(self, values: Mapping[str, float], step: int) -> None:
        """A scalar per value."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def incident(self, incident: Incident) -> None:
        """Write a text under ``roledrift/incidents``."""
        text = "\n\n".join((f"{_state(incident)}: {incident.sentence}", incident.evidence))
        self._writer.add_text("roledrift/incidents", text, incident.step)


def _state(incident: Incident) -> str:
    return "closed" if incident.state == "closed" else incident.severity


LOGBOOKS: Mapping[str, Callable[[], Logbook]] = {
    "wandb": WandbLog,
    "wandb-rows": lambda: WandbLog(rows=True),
    "trackio": TrackioLog,
    "mlflow": MlflowLog,
}
"""Places for statistics that can be named in ``notify.forward``."""


def logbook(place: Any) -> Logbook:
    """Return the logbook for a name in :data:`LOGBOOKS`, a ``SummaryWriter``, or a logbook.

    Raises:
        ConfigError: If it is none of these.
    """
    if isinstance(place, str) and place in LOGBOOKS:
        return LOGBOOKS[place]()
    if hasattr(place, "add_scalar"):
        return SummaryLog(place)
    if hasattr(place, "log") and hasattr(place, "incident"):
        own: Logbook = place
        return own
    raise ConfigError(
        f"cannot forward statistics to {place!r}: give one of {sorted(LOGBOOKS)} or a SummaryWriter"
    )


def log_folder(folder: Path, name: str, *, writer: Any = None) -> tuple[str, ...]:
    """Log the files of a written report to every logbook that is open.

    Args:
        folder: Folder with ``report.md`` and its like.
        name: Of the artifact.
        writer: A ``SummaryWriter`` that gets ``report.md`` as text, if there is one.

    Returns:
        Where it went: names of logbooks; empty if none is open.
    """
    gone = []
    run, mlflow = wandb_run(), mlflow_open()
    if run is not None:
        artifact = sys.modules["wandb"].Artifact(_artifact_name(name), type="roledrift-report")
        artifact.add_dir(str(folder))
        run.log_artifact(artifact)
        gone.append("wandb")
    if trackio_run() is not None:
        trackio = sys.modules["trackio"]
        artifact = trackio.Artifact(_artifact_name(name), type="roledrift-report")
        artifact.add_dir(str(folder))
        trackio.log_artifact(artifact)
        gone.append("trackio")
    if mlflow is not None:
        mlflow.log_artifacts(str(folder), artifact_path=_artifact_name(name))
        gone.append("mlflow")
    page = folder / "report.md"
    if writer is not None and page.is_file():
        writer.add_text(name, page.read_text(encoding="utf-8"))
        gone.append("tensorboard")
    return tuple(gone)


def _artifact_name(name: str) -> str:
    kept = "".join(
        character if character.isalnum() or character in "-_." else "-" for character in name
    )
    return kept[:120] or "roledrift"
