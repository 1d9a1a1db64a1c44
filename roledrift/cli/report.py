"""``roledrift report``: a report on one or many runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from roledrift.cli import console
from roledrift.cli.foreign import opened
from roledrift.config import load
from roledrift.errors import RoleDriftError
from roledrift.store.reader import find_runs

FORMATS = ("html", "md", "json")


def report(paths: Sequence[str], out: Path, *, formats: str, config: Path | None = None) -> int:
    """Write a report.

    Args:
        paths: Runs or folders of runs.
        out: Directory the files are written to; created if needed.
        formats: Comma-separated names out of :data:`FORMATS`.
        config: TOML file to judge by; None judges each run by what it was watched with.

    Returns:
        The exit code: 0, 2 if it could not be done, 3 if there is no run.
    """
    wanted = tuple(dict.fromkeys(name.strip() for name in formats.split(",") if name.strip()))
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown or not wanted:
        near = get_close_matches(unknown[0], FORMATS, n=1) if unknown else []
        hint = f" Did you mean {near[0]!r}?" if near else ""
        message = f"--format {formats!r}: choose from {','.join(FORMATS)}.{hint}"
        return console.fail(console.failure("usage", message))
    with opened(paths) as places:
        for shown, place in places:
            try:
                found = find_runs(place)
            except RoleDriftError as error:
                return console.fail(console.failure_of(error, shown))
            if not found:
                console.say(f"{shown}: no run found here")
                return console.INCONCLUSIVE
        try:
            written = _write(places, out, wanted, config)
        except (RoleDriftError, OSError) as error:
            return console.fail(console.failure_of(error))
    printer = console.console()
    for file in written:
        printer.print(str(file), soft_wrap=True)
    return console.CLEAN


def _write(
    places: Sequence[tuple[str, str]],
    out: Path,
    formats: tuple[str, ...],
    config: Path | None,
) -> list[Path]:
    from rich.progress import Progress

    settings = None if config is None else load(config)
    errors = console.console(errors=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("reading and judging", total=2)
        from roledrift.report.build import build_report
        from roledrift.report.write import write_report

        shown = "roledrift report " + " ".join(shlex.quote(shown) for shown, _ in places)
        built = build_report([place for _, place in places], settings, command=shown)
        progress.update(task, advance=1, description="writing")
        written = write_report(built, out, formats)
        progress.update(task, advance=1)
    return written
