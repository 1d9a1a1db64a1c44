"""The recorded run's report: a change here is a change that users see.

`report.md` is kept byte for byte. Of `report.json` the outline is kept: deep or long parts are
replaced by their size and a digest, so that a difference can be read.
``python -m tests.report.test_golden`` writes both anew; read the difference before committing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

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


def outline(part: Any, depth: int = 8) -> Any:
    """A document without what is long or lies deep, of which size and digest are left."""
    dumped = json.dumps(part, ensure_ascii=False)
    if isinstance(part, dict | list):
        if len(dumped) <= 60:
            return dumped
        if depth and isinstance(part, dict):
            return {name: outline(one, depth - 1) for name, one in part.items()}
        if depth:
            return [outline(one, depth - 1) for one in part]
    elif len(dumped) <= 300:
        return part
    return f"{len(part)} in all, {hashlib.sha256(dumped.encode()).hexdigest()[:8]}"


def kept(out: Path) -> dict[str, str]:
    """What is committed of the report in a folder, by file."""
    body = outline(json.loads((out / "report.json").read_text()))
    return {
        "report.md": (out / "report.md").read_text(),
        "report.json": json.dumps(body, ensure_ascii=False, indent=1) + "\n",
    }


def test_the_report_is_the_one_that_was_committed(tmp_path: Path) -> None:
    render(tmp_path)
    for name, text in kept(tmp_path).items():
        assert text == (GOLDEN / name).read_text()


def test_markdown_is_short() -> None:
    assert len((GOLDEN / "report.md").read_text().splitlines()) <= LINES


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        render(Path(scratch))
        for file, text in kept(Path(scratch)).items():
            (GOLDEN / file).write_text(text)
