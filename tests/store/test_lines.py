"""A file of lines on a disk that fills, frees and is taken away."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from roledrift.store import lines
from roledrift.store.lines import LineFile


class Disk:
    """Room for some more bytes; ``os.write`` of a disk that fills up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = 1 << 30
        self._write = os.write
        monkeypatch.setattr(lines.os, "write", self.write)

    def write(self, descriptor: int, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = self._write(descriptor, data[: self.room])
        self.room -= done
        return done


@pytest.mark.parametrize("room", [0, 1, 4, 5])
def test_lines_wait_for_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    disk, file = Disk(monkeypatch), LineFile(tmp_path / "lines")
    file.append("first")
    disk.room = room
    for number in range(3):
        with pytest.raises(OSError, match="No space"):
            file.append(f"line{number}")
    disk.room = 1 << 30
    file.append("last")
    file.close()
    assert (tmp_path / "lines").read_text().split() == ["first", "line0", "line1", "line2", "last"]
    assert file.lost == 0


@pytest.mark.parametrize("room", [0, 3])
def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    monkeypatch.setattr(lines, "_MOST_WAITING", 30)
    disk, file = Disk(monkeypatch), LineFile(tmp_path / "lines")
    disk.room = room
    for number in range(10):
        with pytest.raises(OSError, match="No space"):
            file.append(f"line {number}")
    disk.room = 1 << 30
    file.append("last")
    written = (tmp_path / "lines").read_text().splitlines()
    whole = [line for line in written if line.startswith("line ")]
    assert written[-1] == "last"
    assert whole == [f"line {number}" for number in range(10 - len(whole), 10)]
    assert file.lost == 10 - len(whole)
    assert len(written) - len(whole) - 1 == (room > 0), "the half line stands alone"


def test_a_file_that_is_taken_away_is_made_again(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "lines", new=True)
    file.append("gone")
    (tmp_path / "lines").unlink()
    file.append("there")
    assert (tmp_path / "lines").read_text() == "there\n"
    with pytest.raises(FileExistsError):
        LineFile(tmp_path / "lines", new=True)
