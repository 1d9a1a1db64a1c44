"""Opening files of a directory that somebody else may have made.

A pipe keeps its reader waiting, a device never ends, and a file may be larger than memory: only
regular files are opened, and only so much is read of them.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

_PIECE = 1 << 20
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def opened(path: Path | str) -> IO[bytes]:
    """A regular file, open for reading.

    Raises:
        OSError: If it cannot be opened, or is a pipe, a device or a folder.
    """
    # Without O_NONBLOCK, opening a pipe waits for a writer, and looking first leaves a race.
    number = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(number, "rb")


def content(path: Path | str, most: int) -> bytes:
    """All bytes of a regular file.

    Raises:
        OSError: As for :func:`opened`, or if the file is larger than ``most``.
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        body = file.read(size + 1) if size <= most else b""
        # Not all file systems know a size beforehand, and a live run grows.
        while size < len(body) <= most and (more := file.read(_PIECE)):
            body += more
    if size > most or len(body) > most:
        limit = f"{most / 2**20:,.0f} MiB" if most >= 2**20 else f"{most} bytes"
        raise OSError(errno.EFBIG, f"larger than {limit}", str(path))
    return body
