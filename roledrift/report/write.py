"""Write a report to a directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import orjson

from roledrift.errors import ConfigError, StoreError
from roledrift.report import FORMATS
from roledrift.report.build import page_of
from roledrift.report.model import REPORT_SCHEMA, Report, plain
from roledrift.report.tabular import tables, to_csv, to_latex

TABLES = "tables"
"""Folder of CSV and LaTeX tables."""


def write_report(
    report: Report, out_dir: Path | str, formats: Sequence[str] = ("html", "md", "json")
) -> list[Path]:
    """Render ``report`` and write its files, replacing each old one atomically.

    Args:
        report: What to write.
        out_dir: Directory; made if it is not there.
        formats: Any of ``html`` (``index.html``; of several runs also a page each in ``runs/``),
            ``md`` (``report.md``), ``json`` (``report.json``), ``csv`` and ``tex`` (the overview's
            tables in ``tables/``), ``png`` (every figure in ``figures/``), ``status``
            (``status.png``: one picture for a chat).

    Returns:
        The files, in the order of ``formats``.

    Raises:
        ConfigError: For an unknown format.
        StoreError: If a file cannot be written.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ConfigError(f"unknown report formats {unknown}: known are {list(FORMATS)}")
    folder = Path(out_dir)
    written = []
    for name in dict.fromkeys(formats):
        if name in _PAGES:
            file, render = _PAGES[name]
            written.append(_put(folder / file, render(report)))
            if name == "html" and report.overview:
                _pages(report, folder)
        elif name == "status":
            from roledrift.report.draw.status_image import status_image

            written.append(_put(folder / "status.png", status_image(report)))
        elif name == "png":
            from roledrift.report.draw.png import figure_pngs

            written += [_put(folder / "figures" / file, body) for file, body in figure_pngs(report)]
        else:
            render_table = to_csv if name == "csv" else to_latex
            for table in tables(report):
                where = folder / TABLES / f"{table.key}.{name}"
                written.append(_put(where, render_table(table).encode()))
    return written


def _pages(report: Report, folder: Path) -> None:
    """A page for every run that has none yet; those of a large folder are written one by one."""
    for run in report.runs:
        if run.sections:
            alone = replace(report, title=run.name, overview=(), runs=(run,), home="../index.html")
            write_page(alone, folder / page_of(run.key))


def write_page(report: Report, path: Path) -> Path:
    """Write one HTML page or one ``.json`` file; raises like :func:`write_report`."""
    return _put(path, render_json(report) if path.suffix == ".json" else _html(report))


def _put(target: Path, body: bytes) -> Path:
    passing = target.with_name(f".{target.name}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        passing.write_bytes(body)
        os.replace(passing, target)
    except OSError as error:
        raise StoreError(
            f"{target.parent}: the report cannot be written ({error.strerror or error}); "
            "give a directory that can be"
        ) from error
    return target


def _html(report: Report) -> bytes:
    from roledrift.report.html import render_html

    return render_html(report).encode()


def _markdown(report: Report) -> bytes:
    from roledrift.report.markdown import render_markdown

    return render_markdown(report).encode()


def render_json(report: Report) -> bytes:
    """Render ``report`` as one line of strict JSON: keys sorted, non-finite numbers as strings."""
    body = {"v": REPORT_SCHEMA, **plain(report)}
    flags = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(body, default=plain, option=flags)


_PAGES: Mapping[str, tuple[str, Callable[[Report], bytes]]] = {
    "html": ("index.html", _html),
    "md": ("report.md", _markdown),
    "json": ("report.json", render_json),
}
