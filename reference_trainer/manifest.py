"""The hashes of a folder's files, kept beside them: damage is found before anything is read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

MANIFEST = "manifest.json"
_VERSION = 1


def write_manifest(folder: Path) -> None:
    """Write the SHA-256 of every file below ``folder`` to ``manifest.json`` in it."""
    text = json.dumps({"version": _VERSION, "sha256": _hashes(folder)}, indent=2)
    (folder / MANIFEST).write_text(text + "\n", "utf-8")


def damage(folder: Path) -> str:
    """Say what is wrong with a folder that :func:`write_manifest` described.

    Returns:
        The end of a sentence that begins with the folder's name; empty if all files are as they
        were written.
    """
    if not (folder / MANIFEST).is_file():
        return f"has no {MANIFEST}: it is incomplete, or an earlier version wrote it"
    try:
        described = json.loads((folder / MANIFEST).read_text("utf-8"))
        version, expected = described["version"], dict(described["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"is damaged: {MANIFEST} cannot be read"
    if version != _VERSION:
        return f"was written by another version: its {MANIFEST} has version {version!r}, not 1"
    try:
        present = _hashes(folder)
    except OSError as error:
        return f"is damaged: {error}"
    if missing := sorted(expected.keys() - present.keys()):
        return f"is damaged: {missing[0]} is missing"
    if changed := sorted(name for name in expected if expected[name] != present[name]):
        return f"is damaged: {changed[0]} is not what was written"
    return ""


def _hashes(folder: Path) -> dict[str, str]:
    hashes = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != folder / MANIFEST:
            with path.open("rb") as file:
                name = path.relative_to(folder).as_posix()
                hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashes
