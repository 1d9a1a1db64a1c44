"""``roledrift demo``: a recorded run that comes with the package, judged and reported."""

from __future__ import annotations

import shlex
import shutil
from importlib.resources import as_file, files
from pathlib import Path

from roledrift.cli import console
from roledrift.errors import RoleDriftError, StoreError

RUN = "demo_run"


def _copy(recorded: Path, run: Path) -> None:
    there, ours = run / "run.json", recorded / "run.json"
    if there.exists() and there.read_bytes() != ours.read_bytes():
        raise StoreError(f"{run}: another run is here; give another directory with --out")
    try:
        shutil.copytree(recorded, run, dirs_exist_ok=True)
    except OSError as error:
        said = error.strerror or "its files cannot be written"
        raise StoreError(
            f"{run}: cannot be made ({said}); give a directory that can with --out"
        ) from error


def demo(out: Path, *, as_json: bool = False) -> int:
    """Copy the recorded run, judge it and write its report.

    Args:
        out: Directory that gets ``run/`` and ``report/``; created if needed.
        as_json: Print one JSON document.

    Returns:
        The exit code: 0, 2 if ``out`` cannot be written.
    """
    from roledrift.report.build import build_report
    from roledrift.report.write import write_report

    run = out / "run"
    try:
        with as_file(files("roledrift.report") / RUN) as recorded:
            _copy(recorded, run)
        report = build_report(run)
        written = write_report(report, out / "report")
    except (RoleDriftError, OSError) as error:
        return console.fail(console.failure_of(error), as_json=as_json)
    found = report.runs[0]
    if as_json:
        console.write_json(
            {
                "schema": "roledrift.demo/1",
                "run": str(run),
                "state": found.state,
                "headline": found.headline,
                "files": [str(file) for file in written],
            }
        )
        return console.CLEAN
    printer = console.console()
    printer.print(f"{found.state}: {found.headline}", soft_wrap=True)
    printer.print(f"open {written[0]}", soft_wrap=True)
    where = shlex.quote(str(run))
    printer.print(f"next: roledrift check {where}; roledrift watch {where}", soft_wrap=True)
    return console.CLEAN
