"""``roledrift report``: a report on one or many runs."""

from __future__ import annotations

import re
import shlex
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from roledrift.cli import console
from roledrift.cli.foreign import opened
from roledrift.config import Config, CostsConfig
from roledrift.detect.settings import load
from roledrift.errors import RoleDriftError
from roledrift.store.reader import find_runs

FORMATS = ("html", "md", "json", "csv", "tex", "png", "status")
COMPARED = 2
"""So many runs are read together: their texts are put side by side. More are read one at a time."""


@dataclass(frozen=True, slots=True)
class Shown:
    """How a report is written.

    Attributes:
        formats: Comma-separated names out of :data:`FORMATS`.
        texts: False leaves out what models wrote.
        redact: Regular expression; what it matches is replaced. Empty for nothing.
        jobs: Processes that share the work; 0 for one per processor.
        by: Comma-separated; what the runs of one curve have in common.
        look: Open the page in a browser.
        paper: With the paper's tables and figures even if no run is of its grid.
        costs: What the estimate of costs cannot know by itself.
    """

    formats: str = "html,md,json"
    texts: bool = True
    redact: str = ""
    jobs: int = 0
    by: str = ""
    look: bool = False
    paper: bool = False
    costs: CostsConfig | None = None


def report(
    paths: Sequence[str],
    out: Path,
    *,
    shown: Shown | None = None,
    config: Path | None = None,
    as_json: bool = False,
) -> int:
    """Write a report.

    Args:
        paths: Runs or folders of runs.
        out: Directory the files are written to; created if needed.
        shown: Formats and what may be shown.
        config: TOML file to judge by; None judges each run by what it was watched with.
        as_json: Print one JSON document that names the files.

    Returns:
        The exit code: 0, 2 if it could not be done, 3 if there is no run.
    """
    shown = shown or Shown()
    wanted = tuple(dict.fromkeys(name.strip() for name in shown.formats.split(",") if name.strip()))
    wrong = _usage(shown, wanted)
    if wrong:
        return console.fail(console.failure("usage", wrong), as_json=as_json)
    with opened(paths) as places:
        count = 0
        for name, place in places:
            try:
                found = find_runs(place)
            except RoleDriftError as error:
                return console.fail(console.failure_of(error, name), as_json=as_json)
            if not found:
                failed = console.failure("inconclusive", f"{name}: no run found here")
                console.fail(failed, as_json=as_json)
                return console.INCONCLUSIVE
            count += len(found)
        try:
            written = _write(places, out, wanted, shown, None if config is None else load(config))
        except (RoleDriftError, OSError) as error:
            return console.fail(console.failure_of(error), as_json=as_json)
    page = next((file for file in written if file.name == "index.html"), None)
    if shown.look and page is not None:
        webbrowser.open(page.resolve().as_uri())
    if as_json:
        files = [str(file) for file in written]
        console.write_json({"schema": "roledrift.report/1", "runs": count, "files": files})
        return console.CLEAN
    printer = console.console()
    for file in written:
        printer.print(str(file), soft_wrap=True)
    return console.CLEAN


def _usage(shown: Shown, wanted: Sequence[str]) -> str:
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown or not wanted:
        near = get_close_matches(unknown[0], FORMATS, n=1) if unknown else []
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return f"--format {shown.formats!r}: choose from {','.join(FORMATS)}.{hint}"
    if shown.look and "html" not in wanted:
        return f"--open needs html in --format {shown.formats!r}."
    try:
        re.compile(shown.redact)
    except re.error as error:
        return f"--redact {shown.redact!r} is no regular expression: {error}."
    return ""


def _write(
    places: Sequence[tuple[str, str]],
    out: Path,
    formats: tuple[str, ...],
    shown: Shown,
    config: Config | None,
) -> list[Path]:
    from roledrift.report.crew import call_in, processes

    paths = [place for _, place in places]
    count, jobs = len(_found(paths)), shown.jobs or processes()
    if count > COMPARED and jobs > 1:
        call_in()
    from rich.progress import Progress

    from roledrift.report.build import build_report
    from roledrift.report.folder import Asked, write_folder
    from roledrift.report.view import Sharing
    from roledrift.report.write import write_report

    redact = re.compile(shown.redact) if shown.redact else None
    sharing = Sharing(texts=shown.texts, redact=redact)
    # What the user named, not where a foreign log was imported to.
    command = "roledrift report " + " ".join(shlex.quote(name) for name, _ in places)
    by = tuple(name.strip() for name in shown.by.split(",") if name.strip())
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
                paper=shown.paper,
                costs=shown.costs,
            )
            return write_report(built, out, formats)
        return write_folder(
            paths,
            out,
            Asked(formats, config, sharing, command, by, jobs, shown.paper, shown.costs),
            seen=lambda done, _: progress.update(task, completed=done),
        )


def _found(paths: Sequence[str]) -> set[Path]:
    return {run for path in paths for run in find_runs(path)}
