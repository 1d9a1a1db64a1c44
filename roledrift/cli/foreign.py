"""``roledrift import``, and other tools' logs where a run is asked for."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from roledrift.cli import console
from roledrift.cli.settings import DEFAULT_DIR
from roledrift.errors import ConfigError, RoleDriftError
from roledrift.store.reader import find_runs

if TYPE_CHECKING:
    from roledrift.ingest.form import Format, Job
    from roledrift.ingest.importing import Imported
    from roledrift.ingest.rows import Events
    from roledrift.workflow import Routing


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user said about the source.

    Attributes:
        form: Name of the format; empty to recognise it.
        roles: Foreign names to roles.
        mapping: Mapping file of a table.
        routing: ``shared``, ``isolated``, or empty for what the source says.
    """

    form: str = ""
    roles: str = ""
    mapping: Path | None = None
    routing: str = ""


def import_(
    source: Path, out: Path | None, wanted: Wanted, *, dry_run: bool = False, as_json: bool = False
) -> int:
    """Import a foreign log and say what was found.

    Args:
        source: File or folder.
        out: Run directory; None puts it under the source's name into the folder that
            ``ROLEDRIFT_DIR`` names, by default ``runs/``.
        wanted: What the user said.
        dry_run: Read everything, write nothing.
        as_json: Print one JSON document.

    Returns:
        The exit code: 0, or 2 if it could not be done.
    """
    from roledrift.ingest.importing import as_json as document
    from roledrift.ingest.importing import remarks, summary

    folder = Path(os.environ.get("ROLEDRIFT_DIR") or DEFAULT_DIR)
    target = None if dry_run else (out or folder / source.resolve().stem)
    try:
        done = _import(source, target, wanted)
    except (RoleDriftError, OSError) as error:
        if source.is_dir() and not wanted.form and find_runs(source):
            message = f"{source}: holds a run already; `roledrift check {source}` judges it"
            return console.fail(console.failure("unreadable", message), as_json=as_json)
        return console.fail(console.failure_of(error, source), as_json=as_json)
    printer = console.console()
    if as_json:
        sys.stdout.write(document(done) + "\n")
        return console.CLEAN
    console.say(f"{source}: {done.reason}")
    for remark in remarks(done):
        console.say(f"{source}: {remark}")
    printer.print(summary(done), soft_wrap=True)
    if done.out is not None:
        printer.print(str(done.out), soft_wrap=True)
    return console.CLEAN


def _import(source: Path, out: Path | None, wanted: Wanted) -> Imported:
    from roledrift.ingest import named, sniff
    from roledrift.ingest.importing import import_run, job_for

    routing: Routing | None = None
    if wanted.routing == "shared":
        routing = "shared"
    elif wanted.routing == "isolated":
        routing = "isolated"
    elif wanted.routing:
        raise ConfigError(f"--routing {wanted.routing!r}: say shared or isolated")
    job = job_for(source, roles=wanted.roles, mapping=wanted.mapping)
    if not source.exists():
        sniff(source)
    form = wanted.form or ("table" if wanted.mapping else "")
    read, reason = named(form) if form else sniff(source)
    with _counted(read) as told:
        return import_run((told, reason), job, out, routing=routing)


@contextmanager
def _counted(form: Format) -> Iterator[Format]:
    """The format, saying on a terminal how far it is; nobody knows how much there is to come."""
    errors = console.console(errors=True)
    if not errors.is_terminal:
        yield form
        return
    with errors.status("reading") as status:

        def read(job: Job) -> Events:
            for count, event in enumerate(form.read(job), start=1):
                if count % 1000 == 0:
                    status.update(f"reading: {count:,} records, at step {event.step}")
                yield event

        yield replace(form, read=read)


@contextmanager
def opened(paths: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """Paths as given, each with the place where its run can be read.

    A path that holds no run but another tool's log is imported into a temporary run, which is gone
    afterwards. Of several paths those that are reports are left out: ``runs/*`` names them too.
    """
    if len(paths) > 1:
        for path in (reports := [path for path in paths if _is_report(Path(path))]):
            console.say(f"{path}: a report, left out")
        paths = [path for path in paths if path not in reports]
    with tempfile.TemporaryDirectory(prefix="roledrift-") as folder:
        places = []
        for number, path in enumerate(paths):
            try:
                place = _place(path, Path(folder) / str(number))
            except (RoleDriftError, OSError) as error:
                if len(paths) == 1:
                    raise
                # The others are still to be looked at.
                console.say(console.failure_of(error, path).message)
                place = path
            places.append((path, place))
        yield places


def _is_report(path: Path) -> bool:
    return (path / "report.json").is_file() and (path / "index.html").is_file()


def _place(path: str, folder: Path) -> str:
    source = Path(path)
    if not source.exists() or (source.is_dir() and find_runs(path)):
        return path
    from roledrift.ingest import sniff
    from roledrift.ingest.importing import remarks

    try:
        sniff(source)
    except RoleDriftError:
        return path  # a folder without runs, or a file that nobody knows; the command says so
    target = folder / (source.resolve().stem or "run")
    done = _import(source, target, Wanted())
    console.say(f"{path}: imported as {done.format} ({done.reason})")
    for remark in remarks(done):
        console.say(f"{path}: {remark}")
    return str(target)
