"""``roledrift report``: a report on one or many runs."""

from __future__ import annotations

import re
import shlex
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from roledrift.cli import console
from roledrift.cli.foreign import opened
from roledrift.cli.options import Reported
from roledrift.config import near
from roledrift.detect.settings import load
from roledrift.errors import RoleDriftError
from roledrift.report import FORMATS
from roledrift.store.reader import find_runs

COMPARED = 2
"""So many runs are read together: their texts are put side by side. More are read one at a time."""


def report(paths: Sequence[str], how: Reported) -> int:
    """Write a report.

    Returns:
        The exit code: 0, 2 if it could not be done, 3 if there is no run.
    """
    as_json = how.as_json
    wanted = tuple(dict.fromkeys(name.strip() for name in how.formats.split(",") if name.strip()))
    wrong = _usage(how, wanted)
    if wrong:
        return console.fail(console.failure("usage", wrong), as_json=as_json)
    with opened(paths) as places:
        count = 0
        for name, place in places:
            try:
                runs = find_runs(place)
            except RoleDriftError as error:
                return console.fail(console.failure_of(error, name), as_json=as_json)
            if not runs:
                failed = console.failure("inconclusive", f"{name}: no run found here")
                console.fail(failed, as_json=as_json)
                return console.INCONCLUSIVE
            count += len(runs)
        try:
            written = _write(places, wanted, how)
        except (RoleDriftError, OSError) as error:
            return console.fail(console.failure_of(error), as_json=as_json)
    page = next((file for file in written if file.name == "index.html"), None)
    if how.look and page is not None:
        webbrowser.open(page.resolve().as_uri())
    if as_json:
        files = [str(file) for file in written]
        console.write_json({"schema": "roledrift.report/1", "runs": count, "files": files})
        return console.CLEAN
    printer = console.console()
    for file in written:
        printer.print(str(file), soft_wrap=True)
    return console.CLEAN


def _usage(how: Reported, wanted: Sequence[str]) -> str:
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown or not wanted:
        name = unknown[0] if unknown else ""
        return f"--format: unknown format {name!r}{near(name, FORMATS)}"
    if how.look and "html" not in wanted:
        return f"--open needs html in --format {how.formats!r}."
    try:
        re.compile(how.redact)
    except re.error as error:
        return f"--redact {how.redact!r} is no regular expression: {error}."
    return ""


def _write(
    places: Sequence[tuple[str, str]], formats: tuple[str, ...], how: Reported
) -> list[Path]:
    from roledrift.report.worker_pool import preload, processes

    config = None if how.config is None else load(how.config)
    paths = [place for _, place in places]
    count, jobs = len(_runs_of(paths)), how.jobs or processes()
    if count > COMPARED and jobs > 1:
        preload()
    from rich.progress import Progress

    from roledrift.report.build import build_report
    from roledrift.report.folder import FolderOptions, write_folder
    from roledrift.report.judged_run import Sharing
    from roledrift.report.write import write_report

    redact = re.compile(how.redact) if how.redact else None
    sharing = Sharing(texts=not how.no_text, redact=redact)
    # What the user named, not where a foreign log was imported to.
    command = "roledrift report " + " ".join(shlex.quote(name) for name, _ in places)
    by = tuple(name.strip() for name in how.by.split(",") if name.strip())
    errors = console.console(errors=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("reading and judging", total=count)
        if count <= COMPARED:
            built = build_report(
                paths,
                config,
                sharing,
                command=command,
                by=by,
                paper=how.paper,
                costs=how.costs,
            )
            return write_report(built, how.out, formats)
        return write_folder(
            paths,
            how.out,
            FolderOptions(formats, config, sharing, command, by, jobs, how.paper, how.costs),
            seen=lambda done, _: progress.update(task, completed=done),
        )


def _runs_of(paths: Sequence[str]) -> set[Path]:
    return {run for path in paths for run in find_runs(path)}
