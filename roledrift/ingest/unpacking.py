"""Files as they lie around: compressed or not, as their first bytes tell."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from roledrift.store import regular

BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What reading a file raises that is cut off, damaged or not ours to read."""

SUFFIXES = (".gz", ".zst", ".bz2", ".xz")
"""Of compressed files. Only their names are judged by it, what is in them by its first bytes."""

UTF8_MARK = b"\xef\xbb\xbf"


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked.

    Raises:
        OSError: If it cannot be opened or is a pipe or device, which could keep us waiting for
            ever; reading on raises one of :data:`BROKEN`.
    """
    with regular.opened(path) as raw:
        start = raw.read(6)
    # Opened anew: what unpacks does not close a file that it was handed.
    makers = (make for magic, make in _PACKED.items() if start.startswith(magic))
    file: IO[bytes] = next(makers, _raw)(path)
    return file


def _raw(path: Path) -> IO[bytes]:
    return regular.opened(path)


def _zstd(path: Path) -> IO[bytes]:
    import pyarrow as pa

    return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(_raw(path), "r"), "zstd"))


_PACKED: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.GzipFile,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": _zstd,
}


def plain(name: str) -> str:
    """A file's name without the suffix of its compression."""
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def matching(folder: Path, pattern: str) -> list[Path]:
    """Files of a folder whose names fit a pattern, compressed or not, sorted."""
    return sorted({file for end in ("", *SUFFIXES) for file in folder.glob(pattern + end)})


def present(path: Path) -> Path | None:
    """The file at ``path`` or its compressed form; None if there is neither.

    Where that may not be known, it is ``path``: whoever opens it will be told.
    """
    variants = (path.with_name(path.name + end) for end in ("", *SUFFIXES))
    try:
        return next((variant for variant in variants if variant.is_file()), None)
    except PermissionError:
        return path
