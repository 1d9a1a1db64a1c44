"""The example distribution, installed the way pip would, through the whole library."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from roledrift import open_monitor, open_run
from roledrift.spans import SpanTable
from roledrift.workflow import VOTING

FOLDER = Path(__file__).parents[2] / "examples" / "extension"


def put_on_path(install: Any) -> None:
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    points = {kind.split(".")[1]: one for kind, one in project["entry-points"].items()}
    install("roledrift_shouting", points, code={"shouting": (FOLDER / "shouting.py").read_text()})


def spans(text: str) -> SpanTable:
    texts = ("quiet words", text, "Well then")
    return SpanTable(VOTING.role_names, np.array([0, 1, 1]), text_N=texts)


def test_live(install: Any, tmp_path: Path, capsys: Any) -> None:
    put_on_path(install)
    config = {"stop_on": ["shouting"], "detectors": {"shouting": {"share": 0.25}}}
    monitor = open_monitor(VOTING, tmp_path / "run", config=config)
    stopped = []
    for step in range(1, 7):
        monitor.observe(spans("all is well" if step < 3 else "ALL IS lost"))
        stopped.append(monitor.end_step(step).stop)
    monitor.close()
    assert stopped.index(True) == 4
    run = open_run(tmp_path / "run")
    # Well then | all is well: 1 of 17 letters; ALL IS lost: 6 of 17.
    assert [one.mean("aggregator", "shouting") for one in run.steps()[1:3]] == [1 / 17, 6 / 17]
    assert run.steps()[0].mean("*", "shouting") == 1 / 27
    (alert,) = run.alerts
    assert (alert.finding, alert.role, alert.stops) == ("shouting", "aggregator", True)
    assert alert.title == "The aggregator has been shouting since step 3"
    assert (alert.onset, alert.severity) == (3, "suspicious")


def test_the_report_shows_it_also_where_it_is_not_installed(
    install: Any, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    with monkeypatch.context():
        put_on_path(install)
        test_live(lambda *_, **__: None, tmp_path, capsys)
    from roledrift.report.judged_run import load

    assert "shouting" in {one.detector for one in load(tmp_path / "run", "run1").verdicts}
    from roledrift import extensions
    from roledrift.detect import catalogue

    monkeypatch.undo()
    extensions.extensions.cache_clear()
    catalogue._known.cache_clear()
    gone = load(tmp_path / "run", "run1")
    assert "shouting" not in {one.detector for one in gone.verdicts}
    assert gone.config.stop_on == ("shouting",)


def test_import(install: Any, tmp_path: Path) -> None:
    put_on_path(install)
    log = tmp_path / "old.shoutlog"
    log.write_text("0\tsolver\tone two\n0\tjudge\tYES\nnonsense\n1\tsolver\tone\n")
    from roledrift.ingest import sniff
    from roledrift.ingest.importing import import_run, job_for

    done = import_run(sniff(log), job_for(log), tmp_path / "run")
    assert (done.format, done.tally.steps, done.tally.spans) == ("shoutlog", 2, 3)
    assert done.odd == {"line of another shape": 1}
    first, second = open_run(tmp_path / "run").steps()
    assert first.mean("solver", "length") == 2.0
    assert [first.mean(role, "shouting") for role in ("solver", "judge", "*")] == [0, 1, 3 / 9]
    assert second.mean("judge", "shouting") is None
