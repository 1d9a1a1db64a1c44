import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.protocols import Sink
from roledrift.records import RunHeader
from roledrift.store.reader import open_run
from roledrift.store.writer import LOST, REMOVED, RunWriter
from roledrift.workflow import EVAL_OPT, VOTING
from tests.store.records import HEADER, alert, incident, sample, step

SRC = Path(__file__).parents[2]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_it_is_a_sink_and_writes_the_documented_files(tmp_path: Path) -> None:
    writer: Sink = RunWriter(tmp_path / "run", HEADER, writer="w")
    writer.write_step(step(0))
    writer.write_alert(alert(0))
    writer.write_incident(incident(0))
    writer.write_samples(0, [sample(0)])
    writer.write_samples(1, [])
    writer.close()
    writer.close()
    found = sorted(
        p.relative_to(tmp_path / "run").as_posix() for p in (tmp_path / "run").rglob("*")
    )
    assert found == [
        "alerts.w.jsonl",
        "incidents.w.jsonl",
        "run.json",
        "samples",
        "samples/00000000-w.parquet",
        "steps.w.jsonl",
    ]
    kinds = [line["kind"] for line in lines(tmp_path / "run/steps.w.jsonl")]
    assert kinds == ["start", "step", "end"]
    assert all(line["v"] == 1 for line in lines(tmp_path / "run/steps.w.jsonl"))


def test_steps_are_stamped_and_there_at_once(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, HEADER, writer="w")
    for number in range(3):
        writer.write_step(replace(step(number), writer="someone else", seq=99))
        last = lines(tmp_path / "steps.w.jsonl")[-1]
        assert (last["step"], last["writer"], last["seq"]) == (number, "w", number)


def test_a_run_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    RunWriter(tmp_path, HEADER).close()
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(StoreError, match="resume=True"):
        RunWriter(tmp_path, HEADER)
    assert sorted(os.listdir(tmp_path)) == before


def test_steps_without_a_header_count_as_a_run(tmp_path: Path) -> None:
    (tmp_path / "steps.x.jsonl").touch()
    with pytest.raises(StoreError, match="a run is here already"):
        RunWriter(tmp_path, HEADER)


def test_resume_starts_a_run_where_none_is(tmp_path: Path) -> None:
    RunWriter(tmp_path / "new", HEADER, resume=True).close()
    assert open_run(tmp_path / "new").header == HEADER


def test_resume_keeps_the_stored_header(tmp_path: Path) -> None:
    RunWriter(tmp_path, HEADER).close()
    RunWriter(tmp_path, replace(HEADER, run="other", seed=8), resume=True).close()
    assert open_run(tmp_path).header == HEADER


@pytest.mark.parametrize("workflow", [EVAL_OPT, VOTING.routed("isolated")])
def test_resume_refuses_other_roles_or_routing(tmp_path: Path, workflow: object) -> None:
    RunWriter(tmp_path, HEADER).close()
    with pytest.raises(StoreError, match="cannot resume"):
        RunWriter(tmp_path, RunHeader(run="x", workflow=workflow), resume=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content", ["", '{"v":1,"kind":"run","wor', '{"v":1,"kind":"step","step":1}']
)
def test_resume_refuses_an_unreadable_header(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(StoreError, match="cannot resume"):
        RunWriter(tmp_path, HEADER, resume=True)


def test_writers_of_one_process_never_share_a_file(tmp_path: Path) -> None:
    writers = [RunWriter(tmp_path, HEADER, resume=True) for _ in range(5)]
    named = [RunWriter(tmp_path, HEADER, resume=True, writer="../trainer") for _ in range(3)]
    names = [one.writer for one in (*writers, *named)]
    assert len(set(names)) == 8
    assert names[5:] == ["trainer", "trainer-2", "trainer-3"]


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_an_unwritable_directory_is_reported_at_construction(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(StoreError, match="give a directory that this user can write to"):
        RunWriter(tmp_path / where, HEADER)


def test_a_remote_directory_is_refused() -> None:
    with pytest.raises(StoreError, match="copy the runs"):
        RunWriter("s3://bucket/run", HEADER)


def test_a_closed_writer_says_so(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, HEADER)
    writer.close()
    with pytest.raises(StoreError, match="closed"):
        writer.write_step(step(0))


FILL_AND_FREE = """
import os, resource, sys
from dataclasses import replace
from roledrift.errors import StoreError
from roledrift.store.writer import RunWriter
from tests.store.records import HEADER, step
writer = RunWriter(sys.argv[1], HEADER)
writer.write_step(step(0))
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
full = os.path.getsize(writer.path / f"steps.{writer.writer}.jsonl") + 50
resource.setrlimit(resource.RLIMIT_FSIZE, (full, hard))
try:
    writer.write_step(step(1))
except StoreError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
writer.write_step(step(2))
writer.close()
"""


def test_a_full_disk_is_a_store_error_and_tears_no_line_once_there_is_room(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILL_AND_FREE, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=SRC,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )
    assert done.returncode == 0, done.stderr
    assert "cannot be written (File too large); give a directory" in done.stdout
    run = open_run(tmp_path)
    assert [one.step for one in run.steps()] == [0, 1, 2]
    assert (run.state, run.problems) == ("finished", ())


def test_a_disk_that_is_full_for_long_glues_nothing_and_names_what_is_lost(tmp_path: Path) -> None:
    """Lines longer than any buffer: the half of one and the next good one were glued together."""
    script = FILL_AND_FREE.replace(
        """try:
    writer.write_step(step(1))
except StoreError as error:
    print(error)
""",
        """for number in range(1, 12):
    try:
        writer.write_step(replace(step(number), labels={"long": "x" * 1_000_000}))
    except StoreError as error:
        pass
""",
    ).replace("step(2)", "step(12)")
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=SRC,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )
    assert done.returncode == 0, done.stderr
    run = open_run(tmp_path)
    steps = run.steps()
    lost = 13 - len(steps)
    assert lost == 7, "four megabytes of lines wait for room"
    assert steps[-1].step == 12
    assert sum(record.faults.get(LOST, 0) for record in steps) == lost
    assert run.state == "finished"
    assert len(run.problems) == 1, "the half line that the disk took"


@pytest.mark.parametrize("replaced", [False, True])
def test_a_directory_that_is_removed_is_made_again(tmp_path: Path, replaced: bool) -> None:
    """It was written on into files without a name, and nobody was told."""
    where = tmp_path / "run"
    writer = RunWriter(where, HEADER)
    writer.write_step(step(0))
    writer.write_alert(alert(0))
    shutil.rmtree(where)
    if replaced:
        where.write_text("a file in its place")
        for number in (1, 2):
            with pytest.raises(StoreError, match="cannot be written"):
                writer.write_step(step(number))
        where.unlink()
    writer.write_samples(3, [sample(3)])
    writer.write_step(step(3))
    writer.write_alert(alert(3))
    writer.close()
    run = open_run(where)
    assert run.header == HEADER
    assert [one.step for one in run.steps()] == ([1, 2, 3] if replaced else [3])
    assert [one.step for one in run.alerts()] == [3]
    assert [one.step for one in run.samples()] == [3]
    assert REMOVED in {name for record in run.steps() for name in record.faults}


def test_text_that_utf8_cannot_hold_survives(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, HEADER)
    writer.write_step(replace(step(0), labels={"odd": "\ud800 \u2028 \x00 é\n"}))
    writer.write_alert(replace(alert(0), text="\udfff"))
    writer.write_samples(0, [sample(0, "half \ud83d pair \x1b[31m")])
    run = open_run(tmp_path)
    assert run.steps()[0].labels == {"odd": "\ud800 \u2028 \x00 é\n"}
    assert run.alerts()[0].text == "\udfff"
    assert run.samples()[0].text == "half ? pair \x1b[31m"
    assert run.problems == ()


WRITE_FOREVER = """
import sys
from roledrift.store.writer import RunWriter
from roledrift.records import Stat, StepRecord
from tests.store.records import HEADER
writer = RunWriter(sys.argv[1], HEADER, resume=True)
print("ready", flush=True)
groups = {f"role{i}": {"length": Stat(1.0, i / 7)} for i in range(200)}
for number in range(int(sys.argv[2]), 1_000_000):
    writer.write_step(StepRecord(step=number, groups=groups))
    print(number, flush=True)
"""


def start_writing(run: Path, first: int = 0) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", WRITE_FOREVER, str(run), str(first)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=SRC,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def wait_for(child: subprocess.Popen[str], steps: int) -> None:
    assert child.stdout is not None
    for _ in range(steps):
        assert child.stdout.readline()


def kill_and_count(child: subprocess.Popen[str]) -> int:
    """SIGKILL; how many steps the writer had reported as written."""
    child.send_signal(signal.SIGKILL)
    assert child.stdout is not None
    reported = [int(line) for line in child.stdout.read().splitlines() if line.isdigit()]
    child.wait()
    return len(reported)


@pytest.mark.parametrize("delay", [0.0, 0.013, 0.041, 0.09])
def test_kill_9_while_writing_loses_at_most_the_step_being_written(
    tmp_path: Path, delay: float
) -> None:
    child = start_writing(tmp_path)
    time.sleep(delay)
    reported = kill_and_count(child)
    run = open_run(tmp_path)
    steps = [one.step for one in run.steps()]
    # The pipe may have cut the last reported number short, so one more is allowed either way.
    assert len(steps) >= reported - 1
    assert steps == list(range(len(steps)))
    assert all(len(one.groups) == 200 for one in run.steps())
    assert run.state == ("open" if steps else "empty")


def test_a_killed_run_is_resumed_and_read_as_one(tmp_path: Path) -> None:
    first = start_writing(tmp_path)
    wait_for(first, 5)
    kill_and_count(first)
    there = len(open_run(tmp_path).steps())
    again = max(there - 2, 0)
    second = start_writing(tmp_path, again)
    wait_for(second, 5)
    kill_and_count(second)
    run = open_run(tmp_path)
    assert [one.step for one in run.steps()] == list(range(len(run.steps())))
    assert len(run.steps()) > there
    assert run.seams == (again,)


def test_processes_write_into_one_directory_at_the_same_time(tmp_path: Path) -> None:
    children = [start_writing(tmp_path / "run", first) for first in (0, 500_000)]
    for child in children:
        wait_for(child, 5)
    counts = [kill_and_count(child) for child in children]
    run = open_run(tmp_path / "run")
    assert len(run.segments) == 2
    assert len(run.steps()) >= sum(counts) + 2 * 5 - 2
