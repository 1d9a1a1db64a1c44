from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.store.glance import glance, stamp
from roledrift.store.reader import open_run
from roledrift.store.writer import RunWriter
from tests.store.records import HEADER, incident, step


def write(path: Path, numbers: range, *, told: bool = True, close: bool = True) -> Path:
    writer = RunWriter(path, HEADER, resume=path.exists())
    for number in numbers:
        writer.write_step(step(number))
    if told:
        writer.write_incident(incident(3))
        writer.write_incident(incident(4, severity="failing"))
    if close:
        writer.close()
    return path


@pytest.mark.parametrize("close", [True, False])
def test_it_says_what_reading_the_whole_run_says(tmp_path: Path, close: bool) -> None:
    seen, run = glance(write(tmp_path / "a", range(5), close=close)), open_run(tmp_path / "a")
    assert (seen.header, seen.incidents) == (run.header, run.incidents())
    assert (seen.last_step, seen.ended, seen.judged, seen.exact) == (4, close, True, True)


def test_a_run_without_steps_and_a_half_written_step(tmp_path: Path) -> None:
    assert glance(write(tmp_path / "a", range(0))).last_step is None
    path = write(tmp_path / "b", range(3), close=False)
    with next(path.glob("steps.*")).open("ab") as stream:
        stream.write(b'{"v":1,"kind":"step","st')
    assert (glance(path).last_step, glance(path).ended) == (2, False)


def test_several_writers_are_not_exact(tmp_path: Path) -> None:
    write(tmp_path / "a", range(5))
    seen = glance(write(tmp_path / "a", range(3, 9)))
    assert (seen.last_step, seen.exact) == (8, False)


def test_the_stamp_changes_with_every_line_and_a_gone_run_has_none(tmp_path: Path) -> None:
    path = write(tmp_path / "a", range(3), close=False)
    before = stamp(path)
    assert before == stamp(path)
    with next(path.glob("steps.*")).open("ab") as stream:
        stream.write(b"\n")
    assert stamp(path) != before
    assert stamp(tmp_path / "gone") == ()
    with pytest.raises(StoreError, match="cannot be read"):
        glance(tmp_path / "gone")
