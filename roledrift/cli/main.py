"""The command ``roledrift``: subcommands, options, exit codes.

The verbs' own modules are loaded when they run, so that ``roledrift --help`` stays quick.
"""

from __future__ import annotations

import gc
import sys
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.main import get_command

from roledrift.cli import console
from roledrift.cli.options import (
    Importing,
    Json,
    Judged,
    Reported,
    run_argument,
    with_options,
)
from roledrift.cli.usage import usage

app = typer.Typer(
    name="roledrift",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

# Usage errors have no public class in typer, and their module differs from version to version.
_UsageError: type[Any] = typer.BadParameter.__bases__[0]


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print versions and exit.")] = False,
) -> None:
    """Know that a role has begun to drift while the run is still cheap to save.

    \b
    roledrift check runs/voting
    roledrift report runs/ -o report
    """
    if version:
        typer.echo(console.versions())
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


@app.command("check")
@with_options(Judged)
def _check(
    runs: Annotated[list[str], run_argument("RUN", "Runs or folders of runs.")],
    how: Judged,
) -> None:
    """Judge recorded runs; the exit code is the verdict.

    \b
    roledrift check runs/voting
    roledrift check runs/* --format github --fail-on suspicious

    \b
    The recorded steps are replayed through the detectors. Exit code:
    0 clean, or suspicious   1 failing, or an input problem   2 an error   3 no verdict
    """
    from roledrift.cli.check import check

    raise typer.Exit(check(runs, how))


@app.command("ls")
def _ls(
    folder: Annotated[
        str, typer.Argument(envvar="ROLEDRIFT_DIR", metavar="DIR", help="Folder of runs.")
    ] = "runs",
    as_json: Json = False,
) -> None:
    """List the runs in a folder.

    \b
    roledrift ls
    roledrift ls runs/sweep --json
    """
    from roledrift.cli.ls import ls

    raise typer.Exit(ls(folder, as_json=as_json))


@app.command("report")
@with_options(Reported)
def _report(
    paths: Annotated[list[str], run_argument("PATH", "Runs or folders of runs.")],
    how: Reported,
) -> None:
    """Write a report on one or many runs.

    \b
    roledrift report runs/voting
    roledrift report runs/ -o report --format html,csv,tex

    One run is a page. A folder is a table, small multiples and a page per run.
    """
    from roledrift.cli.report import report

    raise typer.Exit(report(paths, how))


@app.command("watch")
def _watch(
    runs: Annotated[list[str], run_argument("RUN", "Runs or folders of runs.")],
    every: Annotated[
        float, typer.Option("--every", min=0.1, help="Seconds between two updates.")
    ] = 5.0,
    until_alert: Annotated[
        bool,
        typer.Option(
            "--until-alert", help="Exit with 1 at the first failing run or input problem."
        ),
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Show the current state and exit.")] = False,
    as_json: Json = False,
) -> None:
    """Follow runs as they go.

    \b
    roledrift watch runs/voting
    roledrift watch runs/voting --until-alert || scancel $JOB

    Prints a line per step, incidents, and a notice when a run goes silent. On a terminal, it
    draws a live table. Ends when all runs have finished.
    """
    from roledrift.cli.watch import Watching, watch

    how = Watching(every=every, until_alert=until_alert, once=once)
    raise typer.Exit(watch(runs, how, as_json=as_json))


@app.command("view")
def _view(
    runs: Annotated[list[str], run_argument("RUN", "Runs or folders of runs.")],
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Address to listen on; any other than localhost needs a token."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 picks a free one.")
    ] = 8642,
    out: Annotated[
        Path | None,
        typer.Option("--export", metavar="DIR", help="Write a static copy instead of serving."),
    ] = None,
    look: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: Json = False,
) -> None:
    """Follow runs in a browser.

    \b
    roledrift view runs/

    The runs, the worst first, with curves, incidents and texts. Nothing leaves this machine.
    """
    from roledrift.cli.view import view

    raise typer.Exit(view(runs, host=host, port=port, out=out, look=look, as_json=as_json))


@app.command("compare")
def _compare(
    first: Annotated[str, run_argument("A", "A run.")],
    second: Annotated[str, run_argument("B", "Another.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Also write a report on both.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two runs.

    \b
    roledrift compare runs/shared runs/isolated
    roledrift compare runs/a runs/b -o report

    Differences come with 95 % intervals, paired by step and prompt where possible; then the
    settings and the alerts.
    """
    from roledrift.cli.compare import compare

    raise typer.Exit(compare(first, second, out=out, as_json=as_json))


@app.command("doctor")
def _doctor(
    path: Annotated[str | None, run_argument("RUN", "A run.")] = None,
    webhook: Annotated[
        bool, typer.Option("--test-webhook", help="Send a test message to the webhook.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check this machine, or what a run can answer.

    \b
    roledrift doctor
    roledrift doctor runs/voting

    For a run: which questions it answers, and which setting supplies the others.
    """
    from roledrift.cli.doctor import doctor

    raise typer.Exit(doctor(path, webhook=webhook, as_json=as_json))


@app.command("demo")
def _demo(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Name of a recorded run; see --list.")
    ] = "",
    listing: Annotated[
        bool, typer.Option("--list", help="List the recorded runs and what happened in each.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="DIR",
            help="Directory for run and report; default roledrift-demo/NAME.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge a recorded run that comes with the package, and report on it.

    \b
    roledrift demo
    roledrift demo --list
    roledrift demo wrong-adapter
    """
    from roledrift.cli.demo import demo, list_demos

    code = list_demos(name, as_json=as_json) if listing else demo(name, out, as_json=as_json)
    raise typer.Exit(code)


@app.command("import")
@with_options(Importing)
def _import(
    source: Annotated[str, run_argument("SRC", "File, folder or address to read.")],
    how: Importing,
) -> None:
    """Turn another tool's logs into a run, or a whole tree of them into one run each.

    \b
    roledrift import wandb/ -o runs/x
    roledrift import evaluation_trajectories/ -o runs/
    roledrift import wandb://entity/project/run -o runs/x
    roledrift import trackio/project.db#brave-fox -o runs/x
    roledrift import rollouts.csv --mapping columns.toml -o runs/x --dry-run
    """
    from roledrift.cli.foreign import import_

    raise typer.Exit(import_(source, how))


def run() -> NoReturn:
    """Run the command and exit with its code; the entry point."""
    # Commands make hundreds of thousands of records and hardly a cycle: seldom looking for those
    # saves a tenth of the time.
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    sys.exit(main(sys.argv[1:]))


@cache
def _command() -> Any:
    """The verbs as typer makes them of annotations, which takes as long as a small run's report."""
    return get_command(app)


def main(arguments: list[str]) -> int:
    """Run the command.

    Returns:
        0 clean, 1 findings, 2 could not be done, 3 no verdict, 130 interrupted.
    """
    console.ready_streams()
    as_json = "--json" in takewhile("--".__ne__, arguments)
    try:
        code = _command()(args=arguments, prog_name="roledrift", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else console.CLEAN
    except _UsageError as error:
        verbs = [str(command.name) for command in app.registered_commands]
        return _failed(usage(error, verbs), as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        console.say("interrupted")
        return console.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader (`head`, a pager) has left; typer turns that into SystemExit(1), which means
        # findings here.
        console.forget_stdout()
        return console.FAILED
    except Exception as error:  # Python's own exit code for a crash is 1, which means findings here
        if console.strict():
            raise
        # Verbs say themselves what they could not read or write. What they print has no name.
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            return _full(error)
        return _failed(console.failure_of(error), as_json=as_json)


def _failed(failed: console.Failure, *, as_json: bool) -> int:
    """Say a failure, also where standard output is what has failed."""
    try:
        console.fail(failed, as_json=as_json)
        sys.stdout.flush()
    except OSError as error:
        return _full(error)
    return console.FAILED


def _full(error: OSError) -> int:
    console.forget_stdout()
    console.say(f"standard output cannot be written ({error.strerror or error})")
    return console.FAILED
