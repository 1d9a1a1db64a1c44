from pathlib import Path

import pytest

from reference_trainer.manifest import MANIFEST, damage, write_manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").write_bytes(b"a" * 100)
    (tmp_path / "b").write_bytes(b"")
    write_manifest(tmp_path)
    return tmp_path


def test_what_was_written_is_whole(folder: Path) -> None:
    assert damage(folder) == ""
    (folder / "later").write_text("a further file harms nothing")
    assert damage(folder) == ""


@pytest.mark.parametrize("content", [b"a" * 99, b"a" * 99 + b"b", b"", b"a" * 101])
def test_every_change_of_a_file_is_found(folder: Path, content: bytes) -> None:
    (folder / "deep" / "a").write_bytes(content)
    assert damage(folder) == "is damaged: deep/a is not what was written"


def test_what_is_missing_is_named(folder: Path) -> None:
    (folder / "b").unlink()
    assert damage(folder) == "is damaged: b is missing"
    (folder / MANIFEST).unlink()
    assert "an earlier version" in damage(folder)


@pytest.mark.parametrize("text", ["", "[]", '{"version": 1}', '{"version": 1, "sha256": 3}'])
def test_a_manifest_that_cannot_be_read_is_damage(folder: Path, text: str) -> None:
    (folder / MANIFEST).write_text(text)
    assert damage(folder) == f"is damaged: {MANIFEST} cannot be read"
