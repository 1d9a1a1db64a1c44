"""Write a report to a directory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from roledrift.errors import ConfigError, StoreError
from roledrift.report.model import Report, to_plain


def write_report(
    report: Report, out_dir: Path | str, formats: Sequence[str] = ("html", "md", "json")
) -> list[Path]:
    """Render ``report`` and write the files, each by replacing the old one in one go.

    Args:
        report: What to write.
        out_dir: Directory; made if it is not there.
        formats: Any of ``html`` (``index.html``), ``md`` (``report.md``), ``json``
            (``report.json``).

    Returns:
        The files, in the order of ``formats``.

    Raises:
        ConfigError: For an unknown format.
        StoreError: If a file cannot be written.
    """
    unknown = [name for name in formats if name not in _FORMATS]
    if unknown:
        raise ConfigError(f"unknown report formats {unknown}: known are {list(_FORMATS)}")
    folder = Path(out_dir)
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in dict.fromkeys(formats):
            file, render = _FORMATS[name]
            target, passing = folder / file, folder / f".{file}.tmp"
            passing.write_text(render(report), encoding="utf-8", newline="\n")
            os.replace(passing, target)
            written.append(target)
    except OSError as error:
        raise StoreError(
            f"{folder}: the report cannot be written ({error.strerror or error}); "
            "give a directory that can be"
        ) from error
    return written


def _html(report: Report) -> str:
    from roledrift.report.html import render_html

    return render_html(report)


def _markdown(report: Report) -> str:
    from roledrift.report.markdown import render_markdown

    return render_markdown(report)


def render_json(report: Report) -> str:
    """``report`` as JSON; strict, sorted, non-finite numbers as strings."""
    body = to_plain(report)
    return json.dumps(body, allow_nan=False, ensure_ascii=False, sort_keys=True, indent=1) + "\n"


_FORMATS: Mapping[str, tuple[str, Callable[[Report], str]]] = {
    "html": ("index.html", _html),
    "md": ("report.md", _markdown),
    "json": ("report.json", render_json),
}
