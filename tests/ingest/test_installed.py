"""Formats of other distributions: recognised, read, and survived."""

from pathlib import Path
from typing import Any

import pytest

from roledrift.errors import ConfigError, StoreError
from roledrift.ingest import formats, named, sniff
from roledrift.ingest.importing import import_run, job_for
from roledrift.ingest.tree import find
from roledrift.store.reader import open_run

LINES = """
from roledrift.errors import StoreError
from roledrift.ingest.form import Format
from roledrift.ingest.rows import SpanRow, StepDone
def sniff(path):
    return "a file of mine" if path.suffix in (".mine", ".csv") else None
def read(job):
    for step, line in enumerate(job.source.read_text().split()):
        yield SpanRow(step, "solver", tokens=int(line))
        yield StepDone(step)
FORMAT = Format("mine", "numbers", sniff, read)
"""
POINTS = {"importers": {"mine": "mine_part:FORMAT"}}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.mine"
    path.write_text("3 5 8")
    return path


def test_it_is_recognised_and_read(install: Any, log: Path, tmp_path: Path) -> None:
    install("mine", POINTS, code={"mine_part": LINES})
    known = list(formats())
    assert known.index("trl") < known.index("mine") < known.index("verl")
    assert known[-1] == "table"
    assert named("mine")[0].name == "mine"
    done = import_run(sniff(log), job_for(log), tmp_path / "run")
    assert (done.format, done.reason) == ("mine", "a file of mine")
    steps = open_run(tmp_path / "run").steps()
    assert [one.mean("solver", "length") for one in steps] == [3.0, 5.0, 8.0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('Format("mine"', 'Format("yours"'),
        ("FORMAT = ", "FORMAT = 3 #"),
        ("def read", "import no_such_module\ndef read"),
    ],
)
def test_one_that_is_none_is_left_out(install: Any, log: Path, old: str, new: str) -> None:
    install("mine", POINTS, code={"mine_part": LINES.replace(old, new)})
    assert "mine" not in formats()
    assert {"prime-rl", "table"} <= set(formats())
    with pytest.raises(ConfigError, match="no format 'mine'"):
        named("mine")


def test_a_sniff_that_fails_recognises_nothing(install: Any, log: Path) -> None:
    install("mine", POINTS, code={"mine_part": LINES.replace("return", "1 / 0\n    return")})
    with pytest.raises(StoreError, match=r"not recognised as any of .*mine"):
        sniff(log)


CLAIM = """
from roledrift.ingest.form import Source
def claim(form, folder, below):
    logs = sorted(folder.glob("*.mine"))
    return [Source(form, log, log.stem) for log in logs], below
FORMAT = Format("mine", "numbers", sniff, read, claim=claim)
"""


@pytest.mark.parametrize(("broken", "runs"), [("", ["a", "b"]), ("1 / 0", [])])
def test_it_says_which_files_of_a_tree_are_its_own(
    install: Any, tmp_path: Path, broken: str, runs: list[str]
) -> None:
    for folder, name in (("x", "a"), ("x/y", "b")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{name}.mine").write_text("1 2")
    code = LINES + CLAIM.replace("logs =", f"{broken}\n    logs =")
    install("mine", POINTS, code={"mine_part": code})
    assert [run.name for run in find(tmp_path, formats())] == runs


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("int(line)", "int(line + 'x')", "the importer 'mine' failed .ValueError"),
        ("yield SpanRow", "raise StoreError('line 1 is odd')\n        yield SpanRow", "^line 1 is"),
    ],
)
def test_a_reader_that_fails_is_named_and_leaves_nothing(
    install: Any, log: Path, tmp_path: Path, old: str, new: str, says: str
) -> None:
    install("mine", POINTS, code={"mine_part": LINES.replace(old, new)})
    with pytest.raises(StoreError, match=says):
        import_run(sniff(log), job_for(log), tmp_path / "run")
    assert not (tmp_path / "run").exists()
