"""``roledrift import``, and other tools' logs wherever a run is expected."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from roledrift.cli import console
from roledrift.cli.options import Importing
from roledrift.cli.settings import DEFAULT_DIR
from roledrift.errors import ConfigError, RoleDriftError, StoreError
from roledrift.store.reader import find_runs

if TYPE_CHECKING:
    from roledrift.ingest.form import Format, Job
    from roledrift.ingest.importing import Imported
    from roledrift.ingest.rows import Events
    from roledrift.ingest.tree import Found
    from roledrift.workflow import Routing


@dataclass(frozen=True, slots=True)
class _Todo:
    """One run to be imported."""

    source: str
    out: Path | None
    run: Found | None = None

    @property
    def shown(self) -> str:
        """What it is called in messages."""
        if self.run is None or self.source.endswith(f"#{self.run.name}"):
            return self.source
        return f"{self.source} ({self.run.name})"


def import_(source: str, wanted: Importing) -> int:
    """Import a foreign log, or a tree of logs, and print what was found.

    Returns:
        The exit code: 0, or 2 if it, or one run of a tree, could not be imported.
    """
    from roledrift.ingest.importing import as_json as document
    from roledrift.ingest.importing import summary

    folder = Path(os.environ.get("ROLEDRIFT_DIR") or DEFAULT_DIR)
    target = None if wanted.dry_run else (wanted.out or folder / _stem(source))
    printer = console.console()
    done: list[Imported] = []
    failed: dict[str, str] = {}
    remarks = _Remarks(source)
    try:
        todo = _todo(source, target, wanted)
        for shown, imported in _all(todo, wanted, failed):
            done.append(imported)
            if not wanted.as_json:
                remarks.add(shown, imported)
                printer.print(summary(imported), soft_wrap=True)
                if imported.out is not None:
                    printer.print(str(imported.out), soft_wrap=True)
    except RoleDriftError as error:
        return _failed(error, source, wanted)
    remarks.say()
    if wanted.as_json:
        sys.stdout.write(document(done, failed) + "\n")
    return console.FAILED if failed else console.CLEAN


def _stem(source: str) -> str:
    """The name of a run directory for a source that does not have a better one."""
    from roledrift.ingest.choosing import place

    named = place(source)
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", named.run) or named.path.resolve().stem or "run"


def _failed(error: RoleDriftError, source: str, wanted: Importing) -> int:
    if Path(source).is_dir() and not wanted.form and find_runs(source):
        message = f"{source}: holds a run already; `roledrift check {source}` judges it"
        return console.fail(console.failure("unreadable", message), as_json=wanted.as_json)
    return console.fail(console.failure_of(error, source), as_json=wanted.as_json)


class _Remarks:
    """What a person should know of imports; of many runs, the same remark once."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._runs: dict[str, list[str]] = {}
        self._all = 0

    def add(self, shown: str, done: Imported, reason: str = "") -> None:
        """Remember the remarks on one run."""
        from roledrift.ingest.importing import remarks

        self._all += 1
        for remark in (reason or done.reason, *remarks(done)):
            self._runs.setdefault(remark, []).append(shown)

    def say(self) -> None:
        """Say all of them."""
        for remark, runs in self._runs.items():
            many = f"{self._source} ({len(runs)} of {self._all} runs)"
            console.say(f"{runs[0] if len(runs) == 1 else many}: {remark}")


def _todo(source: str, out: Path | None, wanted: Importing) -> list[_Todo]:
    """The runs at a source: of a tree of logs one per experiment, in folders of their names."""
    from roledrift.ingest import formats, named, remote
    from roledrift.ingest.choosing import chosen, place
    from roledrift.ingest.tree import find, runs_at

    if remote(source) is not None or wanted.mapping:
        return [_Todo(source, out)]
    where = place(source)
    if wanted.form:
        runs = chosen(where, runs_at(where.path, [named(wanted.form)[0]]))
    else:
        runs = chosen(where, find(where.path, formats()))
    if len(runs) == 1 and (where.run or _in_a_database(runs[0], where.path)):
        return [_Todo(source, out, runs[0])]
    if len(runs) < 2 and all(len(run.sources) < 2 for run in runs):
        return [_Todo(source, out)]
    names = [re.sub(r"[^A-Za-z0-9_.-]+", "-", run.name).strip("-.") or "run" for run in runs]
    alike = {name for name in names if names.count(name) > 1}
    names = [f"{name}-{n}" if name in alike else name for n, name in enumerate(names, start=1)]
    return [
        _Todo(source, None if out is None else out / name, run)
        for name, run in zip(names, runs, strict=True)
    ]


def _in_a_database(run: Found, path: Path) -> bool:
    """Whether a folder's only run lies in a file that holds runs: nobody else would look there."""
    (*_, source) = run.sources
    return source.form.runs is not None and source.path != path


def _all(
    todo: Sequence[_Todo], wanted: Importing, failed: dict[str, str]
) -> Iterator[tuple[str, Imported]]:
    """Import runs; of several, those that cannot be are named, and the others still come."""
    for each in todo:
        try:
            imported = _import(each, wanted)
        except (RoleDriftError, OSError) as error:
            if len(todo) == 1 and isinstance(error, RoleDriftError):
                raise
            if len(todo) == 1:  # an OSError is one of the output to those who print
                raise StoreError(str(error)) from error
            failed[each.shown] = console.failure_of(error, each.source).message
            console.say(f"{each.shown}: not imported: {failed[each.shown]}")
        else:
            yield each.shown, imported


def _import(todo: _Todo, wanted: Importing) -> Imported:
    from roledrift.ingest import named, remote, sniff
    from roledrift.ingest.importing import import_run, job_for
    from roledrift.ingest.union import united

    routing: Routing | None = None
    if wanted.routing == "shared":
        routing = "shared"
    elif wanted.routing == "isolated":
        routing = "isolated"
    elif wanted.routing:
        raise ConfigError(f"--routing {wanted.routing!r}: say shared or isolated")
    source = Path(todo.source) if todo.run is None else todo.run.sources[0].path
    job = job_for(
        source,
        roles=wanted.roles,
        mapping=wanted.mapping,
        tokenizer=wanted.tokenizer,
        address=todo.source,
    )
    asked = remote(todo.source)
    if asked is None and not source.exists():
        sniff(source)
    form = wanted.form or ("table" if wanted.mapping else "")
    if todo.run is not None:
        read, reason = united(todo.run)
    elif asked is not None:
        read, reason = asked, asked.title
    else:
        read, reason = named(form) if form else sniff(source)
    with _counted(read) as counted:
        return import_run((counted, reason), job, todo.out, routing=routing)


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
    """Open paths: yield each path as given, with the place where its run or runs can be read.

    A path that holds no run but another tool's logs is imported into temporary runs, which are gone
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
    from roledrift.ingest import remote, sniff
    from roledrift.ingest.choosing import place

    named = place(path)
    asked = remote(path) is not None
    local = named.path.exists() and not (named.path.is_dir() and find_runs(str(named.path)))
    if not (asked or local):
        return path
    target = folder / _stem(path)
    todo = _todo(path, target, Importing())
    if len(todo) == 1 and todo[0].run is None and not asked:
        try:
            sniff(named.path)
        except RoleDriftError:
            return path  # a folder without runs, or a file that nobody knows; the command says so
    remarks = _Remarks(path)
    for shown, done in _all(todo, Importing(), {}):
        remarks.add(shown, done, f"imported as {done.format} ({done.reason})")
    remarks.say()
    return str(target)
