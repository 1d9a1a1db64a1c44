"""wandb and TensorBoard are the real ones; trackio and mlflow are not installed here.

For these two stand modules with the calls that they offer; with themselves: tests/envs/logbooks/.
"""

from __future__ import annotations

import os
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from roledrift_importers.wandb_log import LoggedRow, _payloads, entries

from roledrift import open_monitor
from roledrift.errors import ConfigError
from roledrift.ingest.ledger import Ledger
from roledrift.notify.logbooks import TrackioNotifier, WandbNotifier, log_folder, logbook
from roledrift.notify.metric_logger import MetricLogger
from roledrift.records import Stat, StepRecord
from roledrift.store.reader import open_run
from tests.monitor.test_open_monitor import spans
from tests.notify.alerts import HEADER, INCIDENT, NOTICE

WANDB = """
import sys
import wandb
from roledrift import open_monitor
from roledrift.report.publish import log_report
from tests.monitor.test_open_monitor import spans

folder, rows = sys.argv[1], sys.argv[2] == "rows"
settings = wandb.Settings(x_disable_stats=True, silent=True, console="off", mode="offline")
run = wandb.init(project="p", id="abc", dir=folder, settings=settings)
forward = ["wandb-rows" if rows else "wandb"]
monitor = open_monitor("voting", folder + "/run", config={"notify": {"forward": forward}})
for step in range(24):
    monitor.observe(spans(5 if step < 15 else 15 + step % 2))
    monitor.end_step(step, {"accuracy": 0.6 + 0.01 * (step % 3)})
    if not rows:
        run.log({"loss": float(step)}, step=step)
monitor.close()
print(log_report(folder + "/run", out=folder + "/report"))
run.finish()
"""


def run_with_wandb(folder: Path, mode: str) -> tuple[list[LoggedRow], str]:
    """The program above with the real wandb, offline; read back with our reader."""
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", WANDB, str(folder), mode],
        check=True,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "WANDB_SILENT": "true",
            "WANDB_DATA_DIR": str(folder / "staged"),
        },
    )
    (file,) = (folder / "wandb").glob("offline-run-*/run-abc.wandb")
    rows = [one for one in entries(file, Ledger()) if isinstance(one, LoggedRow)]
    return rows, done.stdout


def messages(folder: Path, kind: str) -> list[Any]:
    """What is uploaded once the offline run is synchronised, as wandb's own messages say it."""
    from wandb.proto.wandb_internal_pb2 import Record

    (file,) = (folder / "wandb").glob("offline-run-*/run-abc.wandb")
    with file.open("rb") as opened:
        records = [Record.FromString(one) for one in _payloads(opened, file.name, Ledger())]
    return [getattr(one, kind) for one in records if one.WhichOneof("record_type") == kind]


@pytest.mark.slow
def test_statistics_and_alerts_are_in_the_wandb_file(tmp_path: Path) -> None:
    rows, out = run_with_wandb(tmp_path, "joined")
    name = "roledrift/aggregator/length"
    lengths = {r.data["roledrift/step"]: r.data[name] for r in rows if name in r.data}
    assert lengths[3.0] == 5.0
    assert lengths[20.0] == 15.0
    assert len(lengths) >= 23
    losses = [row.data["loss"] for row in rows if "loss" in row.data]
    assert losses == [float(step) for step in range(24)], "no row of the host is lost"
    (alert,) = messages(tmp_path, "alert")
    (incident,) = open_run(tmp_path / "run").incidents()
    assert alert.level == "ERROR"
    assert alert.title.startswith(f"{incident.severity}: {incident.role}")
    assert alert.text.startswith(incident.sentence)
    assert out.strip() == "('wandb',)"
    (report,) = messages(tmp_path, "artifact")
    assert (report.name, report.type) == ("roledrift-run", "roledrift-report")
    kept = {one.path: Path(one.local_path).read_bytes() for one in report.manifest.contents}
    written = (tmp_path / "report").rglob("*")
    assert kept == {one.name: one.read_bytes() for one in written if one.is_file()}
    assert {"report.md", "index.html"} <= set(kept)


@pytest.mark.slow
def test_a_program_that_logs_nothing_itself_gets_rows(tmp_path: Path) -> None:
    rows, _ = run_with_wandb(tmp_path, "rows")
    steps = [row.data["roledrift/step"] for row in rows if "roledrift/step" in row.data]
    assert steps == [float(step) for step in range(24)]


def test_statistics_and_alerts_are_in_the_event_file(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(tmp_path / "tb"))
    sinks = [MetricLogger(["generator", "aggregator"], writer)]
    monitor = open_monitor("voting", tmp_path / "run", sinks=sinks, notifiers=[])
    for step in range(20):
        monitor.observe(spans(5 if step < 15 else 15))
        monitor.end_step(step, {"accuracy": 0.6 + 0.01 * (step % 3)})
    monitor.close()
    (tmp_path / "report.md").write_text("# verdict")
    assert log_folder(tmp_path, "report", writer=writer) == ("tensorboard",)
    writer.close()
    events = EventAccumulator(str(tmp_path / "tb"))
    events.Reload()
    scalars = events.Scalars("roledrift/aggregator/length")
    assert [(one.step, one.value) for one in scalars][14:16] == [(14, 5.0), (15, 15.0)]
    texts = events.Tensors("roledrift/incidents/text_summary")
    (incident,) = open_run(tmp_path / "run").incidents()
    assert incident.sentence.encode() in texts[-1].tensor_proto.string_val[0]
    (page,) = events.Tensors("report/text_summary")
    assert page.tensor_proto.string_val == [b"# verdict"]


class Level(StrEnum):
    INFO = "info"
    WARN = "warn"
    ERROR = "error"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Modules named trackio and mlflow that write down how they are called."""
    seen: list[tuple[Any, ...]] = []
    run = SimpleNamespace(log=lambda values, step: seen.append(("trackio.log", values, step)))
    trackio, context = ModuleType("trackio"), ModuleType("trackio.context_vars")
    trackio.AlertLevel = Level  # type: ignore[attr-defined]
    trackio.alert = lambda **said: seen.append(("trackio.alert", said))  # type: ignore[attr-defined]
    context.current_run = SimpleNamespace(get=lambda: run)  # type: ignore[attr-defined]
    mlflow = ModuleType("mlflow")
    mlflow.active_run = lambda: run  # type: ignore[attr-defined]
    mlflow.log_metrics = lambda v, step: seen.append(("mlflow", v, step))  # type: ignore[attr-defined]
    mlflow.set_tag = lambda *tag: seen.append(tag)  # type: ignore[attr-defined]
    mlflow.log_artifacts = lambda *a, **k: seen.append((*a, k))  # type: ignore[attr-defined]
    for module in (trackio, context, mlflow):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return seen


def test_trackio_and_mlflow_get_what_their_calls_take(calls: list[tuple[Any, ...]]) -> None:
    TrackioNotifier().notify(NOTICE, HEADER)
    (name, said), *_ = calls
    assert (name, said["level"]) == ("trackio.alert", Level.ERROR)
    assert said["title"] == "failing: aggregator, length_inflation since step 19"
    assert said["text"].splitlines()[0] == INCIDENT.sentence
    assert "1. stop, or roll back" in said["text"]
    calls.clear()
    forward = MetricLogger(["aggregator"], "trackio", "mlflow")
    forward.write_step(StepRecord(7, groups={"aggregator": {"length": Stat(4, 5.0)}}))
    forward.write_incident(INCIDENT)
    values = {"roledrift/aggregator/length": 5.0}
    assert calls == [
        ("trackio.log", values, 7),
        ("mlflow", values, 7),
        ("roledrift.incident.a3f2c1d0", f"failing step 23: {INCIDENT.sentence}"),
    ]


def test_what_the_program_has_not_opened_is_left_alone(tmp_path: Path) -> None:
    absent = [name for name in ("trackio", "mlflow") if name not in sys.modules]
    WandbNotifier().notify(NOTICE, HEADER)
    TrackioNotifier().notify(NOTICE, HEADER)
    forward = MetricLogger(["aggregator"], "wandb", "trackio", "mlflow")
    forward.write_step(StepRecord(7, groups={"aggregator": {"length": Stat(4, 5.0)}}))
    forward.write_incident(INCIDENT)
    forward.close()
    assert log_folder(tmp_path, "r") == ()
    assert absent == [name for name in ("trackio", "mlflow") if name not in sys.modules]


def test_a_logbook_is_named_or_handed_over() -> None:
    own = SimpleNamespace(log=print, incident=print)
    assert logbook(own) is own
    with pytest.raises(ConfigError, match="wandb-rows"):
        logbook("tensorbord")
