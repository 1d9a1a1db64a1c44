import os
from pathlib import Path

import pytest

from roledrift.store.regular import content, opened


def test_the_bytes_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"0123456789")
    assert content(file, 10) == b"0123456789"
    with pytest.raises(OSError, match="larger than 9 bytes"):
        content(file, 9)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link to a device"])
def test_nothing_else_is_opened(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "f"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    elif kind == "device":
        place = Path("/dev/zero")
    else:
        place.symlink_to("/dev/zero")
    with pytest.raises(OSError, match=r"regular|directory"):
        opened(place)


def test_a_sparse_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "f"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(OSError, match="larger than 1 MiB"):
        content(file, 1 << 20)
