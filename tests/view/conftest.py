"""Little runs for the tests of the view, and a server that runs beside the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

from roledrift.detect.suite import DetectorSuite
from roledrift.records import RunHeader, Sample, Stat, StepRecord
from roledrift.store.writer import RunWriter
from roledrift.view.folder import Folder
from roledrift.view.judging import ImmediateJudge
from roledrift.view.server import application, listen
from roledrift.workflow import VOTING
from tests.report.conftest import browser  # noqa: F401 - a fixture

EVIL = "<img src=x onerror='window.hacked=1'>\x1b[2J\u202e</script>"
ONSET = 20


def record(step: int, *, grows: bool) -> StepRecord:
    late = grows and step >= ONSET
    groups = {
        role: {
            "length": Stat(16, size * (4 if late and role == "aggregator" else 1) + step % 3),
            "reward": Stat(16, 0.5 + 0.01 * (step % 4)),
            "update.k3": Stat(200, 1e-4 * (1 + step % 5)),
        }
        for role, size in (("generator", 40.0), ("aggregator", 5.0))
    }
    return StepRecord(step, groups=groups, totals={"accuracy": 0.7 - 0.01 * (step - ONSET) * late})


def samples(step: int, text: str = "") -> list[Sample]:
    return [
        Sample(step, role, text or f"{role} says {step}", prompt="canary-0", tokens=3, reward=1.0,
               flags=("canary",))
        for role in ("generator", "aggregator")
    ]  # fmt: skip


class Writing:
    """A run that a monitor writes, step by step."""

    def __init__(self, path: Path, *, grows: bool = False, name: str = "", text: str = "") -> None:
        header = RunHeader(name or path.name, VOTING)
        self.path, self.grows, self.text = path, grows, text
        self.sink = RunWriter(path, header, writer="w", judged=True)
        self.suite = DetectorSuite(VOTING)
        self.next = 0

    def go_on(self, steps: int) -> Writing:
        for step in range(self.next, self.next + steps):
            one = record(step, grows=self.grows)
            self.sink.write_step(one)
            for alert in self.suite.update(one):
                self.sink.write_alert(alert)
            for incident in self.suite.changed:
                self.sink.write_incident(incident)
            if step % 5 == 0 and self.text != "none":
                self.sink.write_samples(step, samples(step, self.text))
        self.next += steps
        return self

    def close(self) -> Path:
        self.sink.close()
        return self.path


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy run, and a worse one whose names and texts are hostile. Not to be changed."""
    folder = tmp_path_factory.mktemp("runs")
    Writing(folder / "a-healthy").go_on(30).close()
    Writing(folder / "b-grows", grows=True, name=EVIL, text=EVIL).go_on(40)
    return folder


@contextmanager
def served(folder: Folder, token: str = "") -> Iterator[str]:
    """The address of a server in a thread of this process."""
    with listen("127.0.0.1", 0) as bound:
        names = () if token else ("127.0.0.1",)
        config = uvicorn.Config(
            application(folder, token, names), log_level="error", lifespan="off"
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: server.run(sockets=[bound]), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.fixture
def folder(runs: Path) -> Folder:
    return Folder([str(runs)], ImmediateJudge())
