"""What CONTRIBUTING says about adding things: its files are saved as they stand, and used."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from roledrift import SpanTable, Workflow, open_monitor, open_run
from roledrift.cli.main import app
from roledrift.detect import catalogue
from roledrift.measure import catalogue as measured
from roledrift.report import build
from roledrift.workflow import VOTING

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
FILES = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', PAGE, re.S | re.M))
CACHES = (
    *(catalogue.shipped, catalogue._known, measured.shipped, measured.statistics),
    build._sections,
)
Add = Callable[[str], None]


def roledrift(*arguments: object) -> tuple[int, str]:
    """Exit code and output of the command."""
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, " ".join(done.stdout.split())


def sections_of(run: Path) -> dict[str, str]:
    """The sections of the report of a run, in order: key and everything in it."""
    code, file = roledrift("report", run, "--format", "json", "-o", run.parent / "page")
    assert code == 0
    (report,) = json.loads(Path(file).read_text())["runs"]
    return {one["key"]: json.dumps(one) for one in report["sections"]}


def forget() -> None:
    for one in CACHES:
        one.cache_clear()


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Puts a file of the page where its title says, beside the files of its package."""

    def save(title: str) -> None:
        path = tmp_path / "added" / title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILES[title])
        name = ".".join(Path(title).parent.parts)
        package = import_module(name)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(path.parent)])
        monkeypatch.delitem(sys.modules, f"{name}.{path.stem}", raising=False)
        forget()

    yield save
    monkeypatch.undo()
    forget()


def excited_run(out: Path) -> None:
    """A run whose aggregator begins to exclaim at step 20."""
    draw = np.random.default_rng(0)
    role_N = np.repeat([0, 1], 32)
    monitor = open_monitor(VOTING, out, config={"budget": 0.0}, notifiers=())
    for step in range(1, 41):
        share_N = np.where((role_N == 1) & (step >= 20), 0.8, 0.1)
        texts = ["Yes!" if exclaims else "Yes." for exclaims in draw.random(64) < share_N]
        monitor.observe(SpanTable(VOTING.role_names, role_N, text_N=tuple(texts)))
        monitor.end_step(step)
    monitor.close()


STATISTIC = "roledrift/measure/exclaiming.py"
DETECTOR = "roledrift/detect/detectors/excitement.py"


def test_a_statistic(add: Add, tmp_path: Path) -> None:
    add(STATISTIC)
    excited_run(tmp_path / "run")
    run = open_run(tmp_path / "run")
    assert run.steps()[-1].mean("aggregator", "exclaiming") > 0.5
    assert "exclaiming" in set(run.frame()["statistic"])
    sections = sections_of(tmp_path / "run")
    assert "Exclamations, share of answers" in sections["roles"]
    assert "share of spans with text that hold an exclamation mark" in sections["method"]
    assert "Exclamations" in roledrift("doctor", tmp_path / "run")[1]


def test_a_detector(add: Add, tmp_path: Path) -> None:
    add(STATISTIC)
    add(DETECTOR)
    excited_run(tmp_path / "run")
    run = open_run(tmp_path / "run")
    (alert,) = [one for one in run.alerts if one.finding == "excited"]
    assert (alert.role, alert.severity) == ("aggregator", "suspicious")
    assert 18 <= alert.onset <= 22
    assert alert.advice[0] == "check that no reward pays the aggregator for exclamation marks"
    said = roledrift("check", tmp_path / "run", "--finding", "excited")[1]
    assert f"The aggregator has been exclaiming since step {alert.onset}" in said
    assert "Watches whether a role has begun" in sections_of(tmp_path / "run")["method"]


def test_a_section_of_the_report(add: Add, tmp_path: Path) -> None:
    add(STATISTIC)
    add("roledrift/report/sections/mood.py")
    excited_run(tmp_path / "run")
    sections = sections_of(tmp_path / "run")
    keys = list(sections)
    assert keys[keys.index("roles") + 1] == "mood"
    assert re.search(r"last step: generator \d+%, aggregator \d+%", sections["mood"])


def test_a_workflow(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(FILES["workflow.py"], names)
    debate: Workflow = names["DEBATE"]
    monitor = open_monitor(debate, tmp_path / "run", notifiers=())
    role_N, slot_N = np.array([0, 0, 1]), np.array([0, 1, 0])
    monitor.observe(SpanTable(debate.role_names, role_N, slot_N=slot_N, tokens_N=role_N + 5))
    monitor.end_step(1)
    monitor.close()
    run = open_run(tmp_path / "run")
    assert run.workflow == debate
    assert run.steps()[0].mean("debater/1", "length") == 5
    assert run.steps()[0].mean("referee", "length") == 6


def test_a_reader_of_logs(install: Any, tmp_path: Path) -> None:
    points = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"]
    kinds = {kind.partition(".")[2]: names for kind, names in points.items()}
    install("roledrift_chatlog", kinds, code={"chatlog": FILES["chatlog.py"]})
    log = tmp_path / "old.chatlog"
    log.write_text("".join(f"{step}\tsolver\tone two\n{step}\tjudge\tYES\n" for step in range(8)))
    assert roledrift("import", log, "-o", tmp_path / "run")[0] == 0
    run = open_run(tmp_path / "run")
    assert len(run.steps()) == 8
    assert run.steps()[0].mean("solver", "length") == 2
    assert roledrift("check", log)[0] == roledrift("check", tmp_path / "run")[0]


def test_a_framework(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(FILES["integrations/roledrift_toy/__init__.py"], names)
    trainer = SimpleNamespace(stopped=False)
    names["watch"](trainer, "voting", tmp_path / "run")
    for step in range(1, 4):
        mask = torch.ones(4, 6)
        roles = ["generator", "generator", "generator", "aggregator"]
        trainer.on_batch({"role": roles, "mask": mask, "text": ["a"] * 4})
        trainer.on_step(step)
    trainer.on_end()
    run = open_run(tmp_path / "run")
    assert run.header.host == "toy.Trainer"
    assert [record.step for record in run.steps()] == [1, 2, 3]
    assert run.steps()[0].mean("aggregator", "length") == 6
    assert not any(record.faults for record in run.steps())


def test_the_lists_of_packages_have_every_integration() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    packages = {path.name for path in (ROOT / "integrations").iterdir() if path.is_dir()}
    packages -= {"__pycache__"}
    contracts = project["importlinter"]
    assert set(contracts["root_packages"]) == {"roledrift", *packages}
    assert packages <= set(contracts["contracts"][-1]["forbidden_modules"])
    assert packages <= set(project["mypy"]["packages"])
    wheel = project["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {f"integrations/{name}" for name in packages} <= set(wheel)
