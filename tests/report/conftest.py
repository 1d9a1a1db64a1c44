"""Small runs with a known story, written through the store like any other run."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from roledrift.detect.incidents import Incidents
from roledrift.detect.suite import DetectorSuite
from roledrift.judgement import Alert, Verdict
from roledrift.records import GramRecord, RunHeader, Sample, Stat, StepRecord
from roledrift.report.build import build_report
from roledrift.report.judged_run import JudgedRun, load
from roledrift.report.model import Report
from roledrift.store.writer import RunWriter
from roledrift.workflow import VOTING, Workflow

CHROMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
HOSTILE = "</script><img src=x onerror=alert(1)> \x1b[31mred\x1b[0m \u202eevil\u202c ```"
ONSET = 20
LABELS = ("generator/0", "generator/1", "generator/2", "aggregator")
PRODUCTS = (
    (4.0, 1.0, 1.0, 0.0),
    (1.0, 4.0, 1.0, 0.0),
    (1.0, 1.0, 4.0, -2.0),
    (0.0, 0.0, -2.0, 4.0),
)

Writer = Callable[..., Path]


def wiggle(step: int) -> float:
    return 0.03 * math.sin(7.0 * step)


def length(median: float, count: int) -> Stat:
    return Stat(count, median, median / 4, 1, median * 2, median / 2, median, median * 1.5)


def record(step: int, workflow: Workflow, *, inflates: bool, gradients: bool) -> StepRecord:
    groups = {}
    for role in workflow.roles:
        tokens = (10.0 if role.terse else 100.0) * (1 + wiggle(step))
        if inflates and role.terse and step >= ONSET:
            tokens *= 1 + 0.25 * min(step - ONSET + 1, 10)
        groups[role.name] = {
            "length": length(tokens, 24),
            "reward": Stat(24, 0.5 + wiggle(step), 0.5),
            "update.k3": Stat(240, 1e-4 * (1 + wiggle(step))),
        }
    totals = {"reward": 0.5 + wiggle(step)}
    if step % 5 == 0:
        totals["val_accuracy"] = 0.6 - (0.02 * max(step - ONSET, 0) if inflates else 0.0)
    return StepRecord(
        step,
        time=f"2026-01-01T00:{step:02d}:00Z",
        groups=groups,
        totals=totals,
        gradients=(GramRecord("shared", LABELS, PRODUCTS, "folded", 0.008),) if gradients else (),
        missing=("entropy_N",),
        faults={"non-finite log-prob": 2} if step == 7 else {},
        cost_ms={"capture": 12.0, "write": 1.0},
    )


def samples(step: int, workflow: Workflow, text: str) -> list[Sample]:
    return [
        Sample(step, role.name, text or f"{role.name} says {step}", prompt=f"canary-{index}",
               prompt_text="2 + 2?", tokens=3, finish="stop", reward=1.0, flags=("canary",))
        for role in workflow.roles
        for index in range(2)
    ]  # fmt: skip


def judged(run: JudgedRun, *alerts: Alert, latest: Sequence[Verdict] = ()) -> JudgedRun:
    """The run with these alerts and verdicts alone, and the incidents that they make."""
    book = Incidents()
    for alert in alerts:
        book.update(alert.step, [alert])
    seen = replace(run.replay, alerts=alerts, verdicts=tuple(latest), incidents=book.incidents)
    return replace(run, replay=seen)


@pytest.fixture(scope="session")
def write_run(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    def write(
        place: str | Path = "run",
        *,
        steps: int = 40,
        inflates: bool = False,
        gradients: bool = False,
        text: str | None = None,
        workflow: Workflow = VOTING,
    ) -> Path:
        path = place if isinstance(place, Path) else tmp_path_factory.mktemp("runs") / place
        header = RunHeader(
            path.name, workflow, task="math", seed=3, notes={"stress": "length pays"}
        )
        sink = RunWriter(path, header, writer="w")
        panel = DetectorSuite(workflow)
        for step in range(steps):
            one = record(step, workflow, inflates=inflates, gradients=gradients)
            sink.write_step(one)
            for alert in panel.update(one):
                sink.write_alert(alert)
            for incident in panel.changed:
                sink.write_incident(incident)
            if text is not None and step % 4 == 0:
                sink.write_samples(step, samples(step, workflow, text))
        sink.close()
        return path

    return write


@pytest.fixture(scope="session")
def failing_path(write_run: Writer) -> Path:
    return write_run("failing", inflates=True, gradients=True, text="")


@pytest.fixture(scope="session")
def failing(failing_path: Path) -> JudgedRun:
    return load(failing_path, "run1")


@pytest.fixture(scope="session")
def healthy(write_run: Writer) -> JudgedRun:
    return load(write_run("healthy"), "run1")


@pytest.fixture(scope="session")
def empty(write_run: Writer) -> JudgedRun:
    return load(write_run("empty", steps=0), "run1")


@pytest.fixture(scope="session")
def failing_report(failing_path: Path) -> Report:
    return build_report(failing_path)


@pytest.fixture(scope="session")
def hostile_report(write_run: Writer) -> Report:
    return build_report(write_run("hostile", steps=9, text=HOSTILE))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMES)), None)
    with sync_playwright() as playwright:
        # Without a system browser, the one that `playwright install chromium` brought.
        one = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield one
        one.close()


class Seen:
    """What the page asked for and complained about."""

    def __init__(self, page: Page) -> None:
        self.trouble: list[str] = []
        self.asked: list[str] = []
        self.console = lambda one: self.trouble.append(f"{one.type}: {one.text}")
        self.failed = lambda one: self.trouble.append(str(one))
        self.request = lambda one: self.asked.append(one.url)
        page.on("console", self.console)
        page.on("pageerror", self.failed)
        page.on("request", self.request)
