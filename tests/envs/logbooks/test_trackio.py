"""trackio itself, on its local database: what was logged is read back with its own API."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pytest
import trackio
from trackio.sqlite_storage import SQLiteStorage

from roledrift import open_run
from roledrift.notify.heartbeat import Heartbeat
from roledrift.notify.logbooks import TrackioNotifier, trackio_run
from roledrift.report.publish import log_report
from tests.notify.alerts import HEADER, INCIDENT, NOTICE

NAME = "roledrift/aggregator/length"


@pytest.fixture
def project(request: pytest.FixtureRequest) -> Iterator[str]:
    """A project of the test's own with its run open."""
    name = request.node.name.replace("_", "-")
    trackio.init(project=name, name="r", embed=False)
    yield name
    if trackio_run() is not None:
        trackio.finish()


def test_statistics_and_alerts_and_the_report(
    project: str,
    watched: Callable[[str], Path],
    files: Callable[[Path], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    folder = watched("trackio")
    assert log_report(folder, out=tmp_path / "report") == ("trackio",)
    back = trackio.use_artifact("roledrift-run:latest").download(str(tmp_path / "back"))
    assert files(Path(back)) == files(tmp_path / "report")
    assert "report.md" in files(Path(back))
    trackio.finish()
    rows = [row for row in SQLiteStorage.get_logs(project, "r") if NAME in row]
    assert [row["step"] for row in rows] == list(range(24))
    assert [row[NAME] for row in rows][13:18] == [5.0, 5.0, 16.0, 15.0, 16.0]
    (incident,) = open_run(folder).incidents
    told = trackio.Api().alerts(project)
    assert told[0]["title"].startswith(f"{incident.severity}: {incident.role}")
    assert any(one["text"].startswith(incident.sentence) for one in told)


def test_a_silence_is_told_from_the_thread_that_hears_it(project: str) -> None:
    told = Event()
    after = SimpleNamespace(notify=lambda alert, header: told.set())
    heartbeat = Heartbeat([TrackioNotifier(), after], HEADER, minutes=0.001)
    heartbeat.start()
    assert told.wait(20)
    heartbeat.close()
    trackio.finish()
    assert "silent: No step was finished" in trackio.Api().alerts(project)[0]["title"]


def test_levels_are_trackios(project: str) -> None:
    suspicious = replace(NOTICE, incident=replace(INCIDENT, severity="suspicious"))
    for notice in (replace(NOTICE, change="closed"), suspicious, NOTICE):
        TrackioNotifier().notify(notice, HEADER)
    trackio.finish()
    told = trackio.Api().alerts(project)
    assert sorted(one["level"] for one in told) == ["error", "info", "warn"]


def test_without_a_run_nothing_is_started(watched: Callable[[str], Path]) -> None:
    seen: list[object] = []

    def elsewhere() -> None:  # trackio's open run belongs to a context: this one has none
        seen.append(log_report(watched("trackio")))

    thread = Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [()]
