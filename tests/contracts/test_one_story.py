"""One run is told by every output in the same words: role, finding, onset, sentence."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from roledrift import Monitor, open_monitor
from roledrift.cli.main import app
from roledrift.cli.watch import Watching, watch
from roledrift.detect.conclusion import conclude
from roledrift.judgement import Incident
from roledrift.notify.console import ConsoleNotifier
from roledrift.notify.webhook import WebhookNotifier
from roledrift.report.build import build_report
from roledrift.report.draw import status_image
from roledrift.report.html import render_html
from roledrift.report.markdown import render_markdown
from roledrift.report.model import Report, Table
from roledrift.report.sanitise import escaped
from roledrift.report.write import write_report
from roledrift.store.reader import open_run
from tests.cli.runs import write_run
from tests.monitor.test_open_monitor import spans

BEGINS, STEPS = 20, 44


class Told:
    """A monitored run whose aggregator grows and whose accuracy then falls, with what it told."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "hot"
        self.console = io.StringIO()
        self.posts: list[dict[str, object]] = []
        webhook = WebhookNotifier("http://x", post=lambda _u, body, _t: self._take(body))
        self.monitor: Monitor = open_monitor(
            "voting", self.path, notifiers=[ConsoleNotifier(self.console), webhook]
        )

    def _take(self, body: bytes) -> None:
        self.posts.append(json.loads(body))

    def go_on(self, steps: range) -> Iterator[int]:
        for step in steps:
            late = max(0, step - BEGINS)
            self.monitor.observe(spans(5 + step % 2 if step < BEGINS else 18 + step % 3))
            totals = {"reward": 0.5, "val_accuracy": max(0.0, 0.7 - 0.05 * late), "val_n": 500}
            self.monitor.end_step(step, totals)
            yield step


def call(*arguments: object) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return str(done.stdout)


def of_the_command_line(path: Path, incident: Incident) -> None:
    """`ls`, `check` in every format, `watch`, `compare`."""
    said = incident.sentence
    assert said in call("ls", path.parent)
    (row,) = (one for one in json.loads(call("ls", path.parent, "--json"))["runs"])
    assert (row["outcome"], row["sentence"]) == (incident.severity, said)
    assert (row["role"], row["finding"], row["onset"]) == cause(incident)
    first = call("check", path).splitlines()[0]
    assert first == f"{path}: {incident.severity}: {said}"
    (checked,) = json.loads(call("check", path, "--json"))["runs"]
    assert checked["sentence"] == said
    told = checked["incidents"][0]
    assert (told["role"], told["finding"], told["onset"], told["id"]) == (
        *cause(incident),
        incident.id,
    )
    assert escaped_cell(said) in call("check", path, "--format", "markdown")
    assert said in call("check", path, "--format", "github")
    suites = ElementTree.fromstring(call("check", path, "--format", "junit").split("\n", 1)[1])
    assert said in [one.get("message") for one in suites.iter("failure")]
    (watched,) = json.loads(call("watch", path, "--once", "--json"))["runs"]
    assert watched["sentence"] == said
    assert watched["incidents"][0]["role"] == incident.role
    assert f"A = {path}: {incident.severity}: {said}" in call("compare", path, path)


def escaped_cell(text: str) -> str:
    safe = text.replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{mark}" if mark in "\\`*_[]|#~!" else mark for mark in safe)


def cause(incident: Incident) -> tuple[str, str, int]:
    return incident.role, incident.finding, incident.onset


def of_the_report(path: Path, incident: Incident, folder: Path) -> Report:
    """The page, Markdown and JSON of one run, and the table of a folder."""
    report = build_report(path)
    (run,) = report.runs
    assert (run.state, run.headline) == (incident.severity, incident.sentence)
    assert run.incident is not None
    assert cause(run.incident) == cause(incident)
    (head,) = re.findall(r"<h1>(.*?)</h1>", render_html(report))
    assert re.sub(r"<[^>]+>", "", head).replace("&#34;", "&quot;") == escape(incident.sentence)
    assert f"**{run.state}**: {escaped(incident.sentence)}" in render_markdown(report)
    write_report(report, folder, ("json",))
    body = json.loads((folder / "report.json").read_text())["runs"][0]
    assert body["headline"] == body["incident"]["sentence"] == incident.sentence
    healthy = write_run(folder / "other")
    table = build_report([healthy, path]).overview[1]
    assert isinstance(table, Table)
    worst = table.rows[0]
    assert [cell.text for cell in worst[:4]] == [
        *("hot", incident.severity, run.lead, str(incident.onset))
    ]
    assert incident.sentence.startswith(run.lead)
    return report


def of_the_status_image(report: Report, incident: Incident, patch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    shown = status_image._say

    def say(sheet: object, at: object, words: str, **how: object) -> None:
        drawn.append(words)
        shown(sheet, at, words, **how)  # type: ignore[arg-type]

    with patch.context() as patched:
        patched.setattr(status_image, "_say", say)
        status_image.status_image(report)
    assert drawn[0] == f"{incident.severity.upper()}{', NOT CLOSED' * (not closed(report))}   hot"
    assert incident.sentence in " ".join(drawn)


def closed(report: Report) -> bool:
    return "not closed" not in report.runs[0].facts


def test_one_run_is_told_by_every_output_in_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Told(tmp_path / "runs")
    steps = told.go_on(range(STEPS))
    early = next(step for step in steps if open_run(told.path).incidents())
    for stage in ("early", "end"):
        if stage == "end":
            assert list(steps)[-1] == STEPS - 1
            told.monitor.close()
        stored = open_run(told.path)
        incident = stored.incidents()[0]
        assert incident.state == "open"
        assert told.monitor.closing_line(told.path) == (
            f"roledrift: {incident.sentence} See: roledrift report {told.path}"
        )
        of_the_command_line(told.path, incident)
        report = of_the_report(told.path, incident, tmp_path / stage)
        of_the_status_image(report, incident, monkeypatch)
        judged = conclude([], stored.incidents(), stage == "end")
        assert (judged.outcome, judged.sentence) == (incident.severity, incident.sentence)
    # What was told while it went on: the sentence of each change, word for word, and no more.
    watch([str(told.path)], Watching(once=True))
    messages = capsys.readouterr().out
    console, bodies = told.console.getvalue(), [str(one["body"]) for one in told.posts]
    spoken = [one for one in told.posts if one["change"] != "followed"]
    for post in spoken:
        sentence = post["incident"]["sentence"]  # type: ignore[index]
        assert sentence in console
        assert sentence in messages
        assert str(post["body"]).startswith(sentence)
    assert spoken[0]["step"] == early
    assert console.count("roledrift ") == len(bodies) == len(told.posts) <= 6
