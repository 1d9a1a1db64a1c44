"""Files of a run directory that are no files: every verb goes on without them."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roledrift.cli.main import app
from tests.cli.runs import write_run

VERBS = ("check", "report", "ls", "watch", "compare", "doctor")
PARTS = ("run.json", "steps.b.jsonl", "alerts.b.jsonl", "samples/00000003-b.parquet")


@pytest.fixture
def patience() -> Iterator[None]:
    """A verb that hangs fails, and does not keep the suite waiting."""

    def stop(*_: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def arguments(verb: str, run: Path, other: Path, out: Path) -> list[str]:
    return {
        "check": ["check", str(run)],
        "report": ["report", str(run), "-o", str(out)],
        "ls": ["ls", str(run.parent)],
        "watch": ["watch", "--once", str(run)],
        "compare": ["compare", str(run), str(other)],
        "doctor": ["doctor", str(run)],
    }[verb]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.usefixtures("patience")
def test_a_pipe_or_a_device_is_passed_over(tmp_path: Path, verb: str, part: str, kind: str) -> None:
    run = write_run(tmp_path / "runs" / "a", 12)
    other = write_run(tmp_path / "runs" / "b", 12)
    place = run / part
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    done = CliRunner().invoke(app, arguments(verb, run, other, tmp_path / "report"))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "internal" not in done.output
    if part == "run.json" and verb in ("check", "report", "compare", "doctor"):
        assert done.exit_code == 2
        assert "not a regular file" in done.output
    elif part != "run.json":
        assert done.exit_code in (
            (2,) if verb == "doctor" else (0, 1, 3)
        )  # doctor: something is broken


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("patience")
def test_a_billion_slots_are_refused(tmp_path: Path, verb: str) -> None:
    run = write_run(tmp_path / "runs" / "a", 12)
    other = write_run(tmp_path / "runs" / "b", 12)
    header = (run / "run.json").read_text()
    (run / "run.json").write_text(header.replace('"slots":3', '"slots":1000000000'))
    done = CliRunner().invoke(app, arguments(verb, run, other, tmp_path / "report"))
    assert "at most 1024" in done.output
    assert done.exit_code == (0 if verb == "ls" else 2)
