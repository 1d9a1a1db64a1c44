"""The recorded run's report, byte for byte: a change here is a change that users see.

``python -m tests.report.test_golden`` writes the files anew; read the difference before committing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.resources import files
from pathlib import Path

import pytest

from roledrift.report.build import build_report
from roledrift.report.markdown import LINES
from roledrift.report.write import write_report

GOLDEN = Path(__file__).with_name("golden")


def render(out: Path) -> None:
    """Report on the recorded run under a relative path, for the command is in the report."""
    shutil.copytree(str(files("roledrift.report") / "demo_run"), out / "recorded")
    before = Path.cwd()
    os.chdir(out)
    try:
        write_report(build_report("recorded"), out, ("md", "json"))
    finally:
        os.chdir(before)


@pytest.mark.parametrize("name", ["report.md", "report.json"])
def test_the_report_is_the_one_that_was_committed(name: str, tmp_path: Path) -> None:
    render(tmp_path)
    assert (tmp_path / name).read_text() == (GOLDEN / name).read_text()


def test_markdown_is_short() -> None:
    assert len((GOLDEN / "report.md").read_text().splitlines()) <= LINES


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        render(Path(scratch))
        GOLDEN.mkdir(exist_ok=True)
        for name in ("report.md", "report.json"):
            shutil.copy(Path(scratch) / name, GOLDEN / name)
