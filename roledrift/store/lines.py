"""A file of lines that one process appends to, whatever happens to the disk below it."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

_MOST_WAITING = 4 << 20
"""Bytes of lines that wait for room on the disk; older ones are dropped and counted."""

_END = (b"\n", 0)
"""Ends a line that was written in part and given up."""


class LineFile:
    """Appends whole lines, in order; what could not be written waits for the next call.

    A line of which a part was written is continued where it stopped, so no two lines are ever
    glued together. A line is handed to the operating system before :meth:`append` returns.

    Args:
        path: The file.
        new: Raise FileExistsError if it is there already.

    Attributes:
        lost: Lines that were given up since the last time somebody set it to zero, with those
            that they stood for.
    """

    def __init__(self, path: Path, *, new: bool = False) -> None:
        self.path = path
        self.lost = 0
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._torn = False
        self._descriptor: int | None = self._open(os.O_EXCL if new else 0)

    def append(self, line: str, *, tells: int = 0) -> None:
        """Write a line after those that wait.

        Raises:
            OSError: If something has to wait.
        """
        # A lone surrogate in a model's text has no UTF-8; as an escape it is legal JSON.
        self._waiting.append((line.encode("utf-8", "backslashreplace") + b"\n", tells))
        while (
            sum(len(waiting) for waiting, _ in self._waiting) > _MOST_WAITING
            and len(self._waiting) > 1
        ):
            self._give_up()
        if self.vanished():
            self._reopen()
        assert self._descriptor is not None
        while self._waiting:
            first, stands_for = self._waiting[0]
            done = os.write(self._descriptor, first)
            self._torn = done < len(first)
            if self._torn:
                self._waiting[0] = (first[done:], stands_for)
            else:
                self._waiting.popleft()

    def vanished(self) -> bool:
        """Whether the file is no longer where it was made: removed, or replaced by another."""
        if self._descriptor is None:
            return True
        try:
            present = os.stat(self.path)
        except OSError:
            return True
        opened = os.fstat(self._descriptor)
        return (present.st_dev, present.st_ino) != (opened.st_dev, opened.st_ino)

    def sync(self) -> None:
        """Wait until everything that was written is on the disk."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file; lines that still wait are lost."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _open(self, flags: int = 0) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | flags, 0o666)

    def _reopen(self) -> None:
        self.close()
        if self._torn:  # its first half is gone with the file
            self._give_up()
        if self._waiting and self._waiting[0] == _END:
            self._waiting.popleft()
        self._descriptor = self._open()

    def _give_up(self) -> None:
        """Drop the oldest line; of one that is written in part, end what is there."""
        place = int(self._waiting[0] == _END)
        _, tells = self._waiting[place]
        if self._torn:
            self._waiting[0], self._torn = _END, False
        else:
            del self._waiting[place]
        self.lost += 1 + tells
