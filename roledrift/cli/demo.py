"""``roledrift demo``: a recorded run that comes with the package, judged and reported."""

from __future__ import annotations

import shlex
from pathlib import Path

from roledrift.cli import console
from roledrift.errors import ConfigError, RoleDriftError
from roledrift.report.demos import DEMOS, Demo, demo_named, unpack_demo

HOME = Path("roledrift-demo")
"""Gets a folder per demo."""


def demo(name: str = "", out: Path | None = None, *, as_json: bool = False) -> int:
    """Unpack a recorded run, judge it and write its report.

    Returns:
        The exit code: 0, 2 for an unknown name or if ``out`` cannot be written.
    """
    from roledrift.report.build import build_report
    from roledrift.report.write import write_report

    try:
        chosen = demo_named(name)
    except ConfigError as error:
        return console.fail(
            console.failure("usage", str(error), "roledrift demo --list"), as_json=as_json
        )
    out = HOME / chosen.name if out is None else out
    run = out / "run"
    try:
        unpack_demo(chosen, run)
        report = build_report(run)
        written = write_report(report, out / "report")
    except (RoleDriftError, OSError) as error:
        return console.fail(console.failure_of(error), as_json=as_json)
    judged = report.runs[0]
    if as_json:
        console.write_json(
            {
                "schema": "roledrift.demo/1",
                "demos": _rows(chosen),
                "run": str(run),
                "state": judged.state,
                "headline": judged.headline,
                "files": [str(file) for file in written],
            }
        )
        return console.CLEAN
    printer = console.console()
    printer.print(f"{chosen.name}: {chosen.happened}", soft_wrap=True)
    printer.print(f"{judged.state}: {judged.headline}", soft_wrap=True)
    printer.print(f"open {written[0]}", soft_wrap=True)
    where = shlex.quote(str(run))
    printer.print(f"next: roledrift check {where}; roledrift watch {where}", soft_wrap=True)
    return console.CLEAN


def list_demos(name: str = "", *, as_json: bool = False) -> int:
    """Print the name of every demo, what happened in it and what roledrift says about it.

    Returns:
        The exit code: 0, 2 if a name was given.
    """
    if name:
        message = f"--list names every demo and takes no name, got {name!r}"
        failed = console.failure("usage", message, f"roledrift demo {shlex.quote(name)}")
        return console.fail(failed, as_json=as_json)
    if as_json:
        console.write_json(
            {
                "schema": "roledrift.demo/1",
                "demos": _rows(*DEMOS),
                "run": None,
                "state": None,
                "headline": None,
                "files": [],
            }
        )
        return console.CLEAN
    printer = console.console()
    for shown in DEMOS:
        default = " (default)" if shown is DEMOS[0] else ""
        printer.print(f"{shown.name}{default}", soft_wrap=True)
        printer.print(f"  {shown.happened}", soft_wrap=True)
        printer.print(f"  {shown.state}: {shown.expected}", soft_wrap=True)
    return console.CLEAN


def _rows(*demos: Demo) -> list[dict[str, str]]:
    return [
        {name: getattr(shown, name) for name in ("name", "happened", "expected", "state")}
        for shown in demos
    ]
