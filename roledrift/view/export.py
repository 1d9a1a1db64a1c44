"""A static copy of the page, which opens from a disk or any web server and makes no request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from roledrift.errors import RoleDriftError, StoreError
from roledrift.view import documents
from roledrift.view.assets import PAGE, STATIC, asset
from roledrift.view.folder import Folder

_DIGITS = 6


def export(folder: Folder, out: Path) -> list[Path]:
    """Write the page and the data of every run.

    Args:
        folder: The runs.
        out: Directory; made if it is not there. Files of an earlier copy are replaced.

    Returns:
        The files; the page is the first.

    Raises:
        StoreError: If they cannot be written.
    """
    listing = folder.listing()
    try:
        (out / "static").mkdir(parents=True, exist_ok=True)
        (out / "data").mkdir(exist_ok=True)
        page = asset(PAGE)
        written = [_write(out / "index.html", page.replace('"server"', '"static"'))]
        for name in STATIC:
            written.append(_write(out / "static" / name, asset(name)))
        for row in listing["runs"]:
            key = row["key"]
            written.append(_write(out / "data" / f"{key}.js", _script(key, _run(folder, key))))
        written.append(_write(out / "data" / "runs.js", _script("runs", listing)))
    except OSError as error:
        if isinstance(error, RoleDriftError):
            raise
        raise StoreError(f"{out}: cannot be written ({error.strerror or error})") from error
    return written


def _run(folder: Folder, key: str) -> dict[str, Any]:
    try:
        document = folder.document(key, slots=False)
        for series in document["series"]:
            series["values"] = [_short(value) for value in series["values"]]
        pairs = {
            incident["id"]: folder.pairs(key, incident["id"]) for incident in document["incidents"]
        }
        last = document["text_steps"][-1:]
        texts = {
            role: folder.run(key).texts(role, step) for step in last for role in document["roles"]
        }
    except RoleDriftError as error:
        return {"error": documents.harmless(str(error))}
    return {"run": document, "pairs": pairs, "texts": texts}


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _script(name: str, document: dict[str, Any]) -> str:
    """A document as a script: a page that was opened from a disk may load nothing else."""
    return f"roledriftData({json.dumps(name)}, {documents.dumps(document).decode()});\n"


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
